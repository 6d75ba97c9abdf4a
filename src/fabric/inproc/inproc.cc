// SPDX-License-Identifier: Apache-2.0
// Fabrics between two endpoints in one process:
//   inproc            load/store form: each side maps the other's memory
//   inproc-put        put form: a thread carries out puts late
//   inproc-net        put form: simulates the worst behaviour that a network may have
//   inproc-net-words  the same, for networks on which words travel alone, without a payload
#include <cerrno>
#include <utility>

#include "fabric/check.hpp"
#include "fabric/inproc/mapped_end.hpp"
#include "fabric/inproc/net_end.hpp"
#include "fabric/inproc/ports.hpp"
#include "fabric/inproc/put_end.hpp"
#include "fabric/registry.hpp"

namespace wherry::fabric::inproc {
namespace {

using Ends = std::array<std::unique_ptr<Connection>, 2>;
using Sides = std::array<std::unique_ptr<Side>, 2>;
using Addresses = std::array<Address, 2>;  // [side]: its own

Ends make_mapped(Sides sides, const Addresses& addresses) {
  auto pair = std::make_shared<Pair>(Pair{std::move(sides)});
  return {std::make_unique<MappedEnd>(pair, 0, this_process(addresses[1])),
          std::make_unique<MappedEnd>(pair, 1, this_process(addresses[0]))};
}

Ends make_put(Sides sides, const Addresses& addresses) {
  static std::atomic<std::uint64_t> seed{1};
  auto pair = std::make_shared<PutPair>(PutPair{{std::move(sides)}, {}});
  for (const std::size_t from : {0U, 1U}) {
    pair->queues[from] = std::make_shared<PutQueue>(*pair->sides[1 - from], pair->sides[from]->page, seed++);
  }
  return {std::make_unique<PutEnd>(pair, 0, this_process(addresses[1])),
          std::make_unique<PutEnd>(pair, 1, this_process(addresses[0]))};
}

template <WordsTravel kWords>
Ends make_net(Sides sides, const Addresses& addresses) {
  static std::atomic<std::uint64_t> seed{1};
  auto pair = std::make_shared<NetPair>(NetPair{{std::move(sides)}, nullptr});
  pair->link = std::make_shared<NetLink>(std::array{pair->sides[0].get(), pair->sides[1].get()}, kWords, seed++);
  return {std::make_unique<NetEnd>(pair, 0, addresses[1]), std::make_unique<NetEnd>(pair, 1, addresses[0])};
}

struct Form {
  std::string_view name;
  Reach reach;
  Ends (*make)(Sides, const Addresses&);
};

constexpr Form kMapped{"inproc", Reach::map, make_mapped};
constexpr Form kPut{"inproc-put", Reach::wire, make_put};
constexpr Form kNet{"inproc-net", Reach::wire, make_net<WordsTravel::with_payload>};
constexpr Form kNetWords{"inproc-net-words", Reach::wire, make_net<WordsTravel::alone>};

class InprocListener final : public Listener {
 public:
  InprocListener(Ports& ports, const Form& form, Address local, Ports::Key key, std::shared_ptr<Queue> queue)
      : ports_(ports), form_(form), local_(std::move(local)), key_(key), queue_(std::move(queue)) {}

  ~InprocListener() override {
    ports_.release(key_);
    queue_->close();
  }

  std::unique_ptr<Connection> try_accept(const Offer& offer) override {
    check_offer("accept", local_, offer);
    while (auto attempt = queue_->pop()) {
      try {
        if (is_refused(*attempt, offer)) continue;
        auto own = std::make_unique<Side>(offer, form_.reach);
        if (auto connection = meet(*attempt, std::move(own))) return connection;
      } catch (...) {
        queue_->push_front(attempt);  // the failure is on this side: the connector may be accepted later
        throw;
      }
    }
    return nullptr;
  }

  [[nodiscard]] int descriptor() const override { return queue_->descriptor(); }
  [[nodiscard]] const Address& local() const override { return local_; }

 private:
  static bool is_refused(Attempt& attempt, const Offer& offer) {
    if (offer.objection == nullptr) return false;
    {
      const std::lock_guard lock(attempt.mutex);
      if (attempt.state != Attempt::State::waiting) return false;
      if (offer.objection(attempt.side->greeting, attempt.side->segment.own().size()) == nullptr) return false;
      attempt.state = Attempt::State::refused;
    }
    attempt.news.notify();
    return true;
  }

  /// Makes the connection. Null if the connector has given up.
  std::unique_ptr<Connection> meet(Attempt& attempt, std::unique_ptr<Side> own) {
    Ends ends;
    {
      const std::lock_guard lock(attempt.mutex);
      if (attempt.state != Attempt::State::waiting) return nullptr;
      attempt.state = Attempt::State::refused;  // in case making the ends throws
      const Address connector{.fabric = local_.fabric, .node = local_.node, .port = std::nullopt};
      ends = form_.make({std::move(own), std::move(attempt.side)}, {attempt.target, connector});
      attempt.connection = std::move(ends[1]);
      attempt.state = Attempt::State::accepted;
    }
    attempt.news.notify();
    return std::move(ends[0]);
  }

  Ports& ports_;
  const Form& form_;
  Address local_;
  Ports::Key key_;
  std::shared_ptr<Queue> queue_;
};

class InprocConnecting final : public Connecting {
 public:
  explicit InprocConnecting(std::shared_ptr<Attempt> attempt) : attempt_(std::move(attempt)) {}

  ~InprocConnecting() override {
    const std::lock_guard lock(attempt_->mutex);
    attempt_->state = Attempt::State::given_up;
    attempt_->side.reset();
    attempt_->connection.reset();
  }

  std::unique_ptr<Connection> try_finish() override {
    const std::lock_guard lock(attempt_->mutex);
    if (attempt_->state == Attempt::State::refused) {
      throw Error(
          ECONNREFUSED, "connect", attempt_->target.to_string(),
          "the listener was closed before it accepted, or refused this connector; use one version on both sides");
    }
    return std::move(attempt_->connection);
  }

  [[nodiscard]] int descriptor() const override { return attempt_->news.descriptor(); }

 private:
  std::shared_ptr<Attempt> attempt_;
};

class InprocFabric final : public Fabric {
 public:
  explicit InprocFabric(const Form& form) : form_(form) {}

  [[nodiscard]] std::string_view name() const override { return form_.name; }

  std::unique_ptr<Listener> listen(const Address& address) override {
    auto [key, queue] = ports_.bind(node_to_bind(address), address);
    Address local{.fabric = address.fabric, .node = key.first, .port = key.second};
    return std::make_unique<InprocListener>(ports_, form_, std::move(local), key, std::move(queue));
  }

  std::unique_ptr<Connecting> connect(const Address& address, const Offer& offer) override {
    check_target(address);
    check_offer("connect", address, offer);
    const auto queue = ports_.find({*address.node, *address.port});
    if (queue == nullptr) refuse(address);
    auto attempt = std::make_shared<Attempt>();
    attempt->target = address;
    attempt->side = std::make_unique<Side>(offer, form_.reach);
    if (!queue->push(attempt)) refuse(address);
    return std::make_unique<InprocConnecting>(std::move(attempt));
  }

  std::shared_ptr<memory::SharedMemory> share(std::size_t bytes) override {
    return form_.reach == Reach::map ? std::make_shared<memory::SharedMemory>(bytes) : Fabric::share(bytes);
  }

 private:
  [[noreturn]] static void refuse(const Address& address) {
    throw Error(ECONNREFUSED, "connect", address.to_string(),
                "nobody in this process listens there; listen first, or use a fabric that reaches other processes");
  }

  const Form& form_;
  Ports ports_;
};

}  // namespace
}  // namespace wherry::fabric::inproc

namespace wherry::fabric {

void register_inproc(Registry& registry) {
  registry.add(std::make_unique<inproc::InprocFabric>(inproc::kMapped));
  for (const auto* form : {&inproc::kPut, &inproc::kNet, &inproc::kNetWords}) {
    registry.add(std::make_unique<inproc::InprocFabric>(*form));
  }
}

}  // namespace wherry::fabric
