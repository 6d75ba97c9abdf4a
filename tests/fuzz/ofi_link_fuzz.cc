// SPDX-License-Identifier: Apache-2.0
// A connection between hosts whose peer has proved to hold the key and then sends what it likes: messages, words, and
// writes into what was exposed to it. A model says which of it makes sense, and what memory then holds. Whatever else
// arrives ends the connection; nothing outside the segment and exposed memory is touched; and the endpoint reads and
// writes the program's memory only until a flush has given it back.
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <wherry/error.hpp>

#include "base/open_descriptors.hpp"
#include "fabric/check.hpp"
#include "fabric/ofi/connection.hpp"
#include "fabric/ofi/service.hpp"
#include "memory/arena.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/fuzz/ofi/played_network.hpp"
#include "tests/fuzz/quieten.hpp"

namespace wherry::fuzz {
namespace {

using namespace fabric::ofi;
namespace layout = fabric::ofi::layout;
using fabric::Bell;
using fabric::Deadline;
using layout::LinkKind;
using layout::LinkMessage;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kExposed = 3 * kPage;
constexpr int kEndpointDescriptor = -1;

void require(bool holds) {
  if (!holds) std::abort();
}

void read_all(std::span<const std::byte> bytes) {
  unsigned sum = 0;
  for (const std::byte each : bytes) sum += std::to_integer<unsigned>(each);
  require(sum != 1U << 31);  // So that the reads are not optimised away.
}

/// A heap block of exactly a page, so that one byte outside is seen.
struct Page {
  Page() : bytes(static_cast<std::byte*>(std::aligned_alloc(kPage, kPage))) { std::memset(bytes, 0, kPage); }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  ~Page() { std::free(bytes); }
  std::byte* bytes;
};

/// Pages that the program exposes: the same for all inputs, as an arena hands out each place once.
std::span<std::byte> exposed_pages() {
  static const std::span<std::byte> pages(
      static_cast<std::byte*>(::mmap(nullptr, kExposed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
      kExposed);
  return pages;
}

/// What an honest reading of link_messages.hpp makes of the peer's messages.
class Model {
 public:
  explicit Model(std::size_t peer_bytes) : peer_bytes_(peer_bytes) {}

  void on_word(std::uint64_t data) {
    const std::size_t slot = layout::slot_of(data);
    if (is_broken_) return;
    if (slot >= slots_.size()) {
      is_broken_ = true;
    } else {
      store(slots_[slot], layout::slot_value(data));
    }
  }
  /// `is_exposed`: the memory of that key holds such a word.
  void on_message(const LinkMessage& message, bool is_exposed) {
    if (is_broken_) return;
    is_broken_ = !is_sensible(message, is_exposed);
    if (is_broken_) return;
    if (message.kind == static_cast<std::uint32_t>(LinkKind::welcome)) is_welcome_ = true;
    if (message.kind == static_cast<std::uint32_t>(LinkKind::slot)) slots_.push_back(message.a);
    if (message.kind == static_cast<std::uint32_t>(LinkKind::word)) store(message.a, message.b);
  }
  void on_flush_sent(std::uint64_t number) {
    require(number > asked_);
    asked_ = number;
  }
  void on_write(std::size_t offset, std::span<const std::byte> bytes) {
    std::memcpy(segment_.data() + offset, bytes.data(), bytes.size());
  }

  [[nodiscard]] bool is_broken() const { return is_broken_; }
  [[nodiscard]] std::size_t slots() const { return slots_.size(); }
  [[nodiscard]] std::uint64_t asked() const { return asked_; }
  [[nodiscard]] std::span<const std::byte> segment() const { return segment_; }

 private:
  static bool is_word(std::uint64_t offset) { return offset % 8 == 0 && offset < kPage; }
  [[nodiscard]] bool is_sensible(const LinkMessage& message, bool is_exposed) const {
    switch (message.kind) {
      case 1:
        return !is_welcome_ && message.number == layout::kLinkVersion && message.c == peer_bytes_;
      case 2:
        return message.number == slots_.size() && slots_.size() < 256 && is_word(message.a) && message.b < 3;
      case 3:
        return is_word(message.a) && message.number < 3;
      case 4:
        return is_exposed;
      case 6:
        return message.a <= asked_;
      default:
        return message.kind == 5 || message.kind == 7 || message.kind == 8;
    }
  }
  void store(std::uint64_t offset, std::uint64_t value) { std::memcpy(segment_.data() + offset, &value, sizeof value); }

  const std::size_t peer_bytes_;
  std::array<std::byte, kPage> segment_{};
  std::vector<std::uint64_t> slots_;
  std::uint64_t asked_ = 0;
  bool is_welcome_ = false;
  bool is_broken_ = false;
};

/// The fabric and the peer behind it.
class HostilePeer final : public PlayedNetwork {
 public:
  HostilePeer(Input& input, std::span<std::byte> segment)
      : input_(input), segment_(segment), carries_words_(!input.one_in(4)) {}

  Posted write(std::span<const std::byte> source, const RemotePlace& /*to*/,
               std::optional<std::uint64_t> data) override {
    require(carries_words_ || !data);
    read_all(source);
    const Posted result = posted();
    if (result == Posted::yes) sends_.push_back(source);
    return result;
  }
  Posted read(std::span<std::byte> into) override {
    const Posted result = posted();
    if (result == Posted::yes) reads_.push_back(into);
    return result;
  }
  Posted send(const LinkMessage& message) override {
    const Posted result = posted();
    if (result != Posted::yes) return result;
    sends_.emplace_back();
    if (!is_welcomed_) {
      require(message.kind == 1 && message.number == layout::kLinkVersion && message.c == segment_.size());
      require(registered_.contains(message.a));
      is_welcomed_ = true;
    }
    if (message.kind == 5) model.on_flush_sent(message.a);
    if (message.kind == 7) last_reach_ = message.number;
    if (message.kind == 8) on_reached(message);
    return result;
  }
  int poll(Handler& handler, int most) override {
    int handled = 0;
    if (std::exchange(welcomes_, false)) {
      hand_over(handler, {.kind = 1, .number = layout::kLinkVersion, .a = 1, .b = 0, .c = kPage});
      ++handled;
    }
    while (handled < most && !input_.empty()) {
      const auto choice = input_.number<std::uint8_t>() % 12;
      if (choice == 0) return handled;
      if (choice == 1 && input_.one_in(8)) return -1;
      ++handled;
      act(handler, choice);
    }
    return handled;
  }
  [[nodiscard]] bool carries_words() const override { return carries_words_; }
  void on_endpoint_closed() override {
    sends_.clear();
    reads_.clear();
  }

  std::uint64_t expose(std::span<std::byte> memory) override {
    read_all(memory);
    registered_.emplace(++last_key_, memory);
    return last_key_;
  }
  void on_registration_ended(std::uint64_t key) override { require(registered_.erase(key) == 1); }

  void run_others() override { on_idle(); }

  /// To be set before the program sleeps: serves the link, and ends it if the input is used up.
  std::function<void()> on_idle;
  /// What the program exposes.
  memory::RemoteKey exposed_key;
  Model model{kPage};

  /// The endpoint may still read or write memory of the program's.
  [[nodiscard]] bool holds_memory() const {
    return !reads_.empty() || std::ranges::any_of(sends_, [](const auto& source) { return !source.empty(); });
  }
  [[nodiscard]] bool is_cut_off() const { return registered_.empty() && sends_.empty() && reads_.empty(); }

 private:
  Posted posted() {
    require(sends_.size() + reads_.size() < Endpoint::kMostInFlight);
    if (input_.one_in(64)) return Posted::dead;
    return input_.one_in(16) ? Posted::full : Posted::yes;
  }

  void act(Handler& handler, int choice) {
    switch (choice) {
      case 1:
      case 2:
        if (sends_.empty()) return;
        read_all(sends_.front());
        sends_.pop_front();
        handler.on_sent();
        return;
      case 3:
        if (reads_.empty()) return;
        std::memset(reads_.front().data(), 'r', reads_.front().size());
        reads_.pop_front();
        handler.on_read();
        return;
      case 4: {
        const std::size_t slot = input_.one_in(8) ? input_.number<std::uint8_t>() : input_.number<std::uint8_t>() % 4;
        const std::uint64_t data = layout::slot_data(static_cast<std::uint8_t>(slot), input_.number<std::uint64_t>());
        model.on_word(data);
        handler.on_word(data);
        return;
      }
      case 5:
        write_registered();
        return;
      default:
        say(handler);
    }
  }

  /// A provider checks keys and bounds.
  void write_registered() {
    if (registered_.empty()) return;
    auto each =
        std::next(registered_.begin(), static_cast<std::ptrdiff_t>(input_.number<std::uint8_t>() % registered_.size()));
    const std::size_t offset = input_.number<std::uint16_t>() % each->second.size();
    const auto bytes = each->second.subspan(offset).first(
        std::min<std::size_t>(input_.number<std::uint8_t>(), each->second.size() - offset));
    if (bytes.empty()) return;
    std::memset(bytes.data(), input_.number<std::uint8_t>(), bytes.size());
    if (each->second.data() == segment_.data()) model.on_write(offset, bytes);
  }

  void say(Handler& handler) { hand_over(handler, made()); }

  void hand_over(Handler& handler, const LinkMessage& message) {
    std::byte* const word = message.kind == 4 ? exposed_word(message) : nullptr;
    const bool was_broken = model.is_broken();
    model.on_message(message, word != nullptr);
    if (!was_broken && message.kind == 7) asked_.push_back(message.c);
    handler.on_message(message);
    if (word != nullptr && !was_broken) require(std::memcmp(word, &message.b, sizeof message.b) == 0);
  }

  LinkMessage made() {
    LinkMessage message{};
    message.kind = input_.one_in(32) ? input_.number<std::uint32_t>() : input_.number<std::uint8_t>() % 9;
    message.number = input_.one_in(8) ? input_.number<std::uint32_t>() : number_of(message.kind);
    message.a = input_.one_in(16) ? input_.number<std::uint64_t>() : a_of(message.kind);
    message.b = message.kind == 2 ? input_.number<std::uint8_t>() % 4 : input_.number<std::uint64_t>();
    if (message.kind == 7 && !input_.one_in(8)) message.b = exposed_key.kind;
    message.c = c_of(message.kind);
    return message;
  }
  std::uint32_t number_of(std::uint32_t kind) {
    if (kind == 1) return layout::kLinkVersion;
    if (kind == 2) return static_cast<std::uint32_t>(model.slots());
    if (kind == 8) return last_reach_;
    return input_.number<std::uint8_t>() % 4;
  }
  std::uint64_t a_of(std::uint32_t kind) {
    if (kind == 6) return model.asked() + (input_.one_in(8) ? 1 : 0);
    if (kind == 7) return exposed_key.place + (input_.one_in(4) ? input_.number<std::uint16_t>() : 0U);
    // Up to a few words behind the end.
    return input_.number<std::uint16_t>() % (kPage / 8 + 4) * std::uint64_t{8};
  }
  std::uint64_t c_of(std::uint32_t kind) {
    if (kind == 8) return input_.one_in(2) ? input_.number<std::uint16_t>() : 0;
    if (kind == 4) return input_.one_in(4) ? input_.number<std::uint8_t>() : last_key_;
    if (input_.one_in(16)) return input_.number<std::uint64_t>();
    return kind == 7 ? input_.number<std::uint8_t>() % 5 * kPage : kPage;
  }

  /// Null: there is no such word, or no such memory was exposed to the peer.
  std::byte* exposed_word(const LinkMessage& message) {
    const auto known = registered_.find(message.c);
    if (known == registered_.end() || known->second.data() == segment_.data()) return nullptr;
    const bool holds = message.a % 8 == 0 && message.a < known->second.size() && known->second.size() - message.a >= 8;
    return holds ? known->second.data() + message.a : nullptr;
  }

  void on_reached(const LinkMessage& message) {
    require(!asked_.empty());
    const std::uint64_t bytes = asked_.front();
    asked_.pop_front();
    if (message.c != 0) return;
    const auto known = registered_.find(message.a);
    require(known != registered_.end() && known->second.data() != segment_.data());
    require(known->second.size() == bytes && bytes <= kExposed);
  }

  Input& input_;
  const std::span<std::byte> segment_;
  const bool carries_words_;
  bool welcomes_ = !input_.one_in(4);  // as a peer does
  bool is_welcomed_ = false;
  std::deque<std::span<const std::byte>> sends_;  // empty: a message
  std::deque<std::span<std::byte>> reads_;
  std::map<std::uint64_t, std::span<std::byte>> registered_;
  std::uint64_t last_key_ = 0;
  std::uint32_t last_reach_ = 0;
  std::deque<std::uint64_t> asked_;  // bytes of the peer's requests that wait for an answer
};

/// The program that has the connection.
class Victim {
 public:
  explicit Victim(Input& input) : input_(input) {
    std::array<int, 2> sockets{};
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) == 0);
    const int rendezvous = sockets[0];
    peers_socket_ = UniqueFd(sockets[1]);
    Meeting meeting{.socket = UniqueFd(sockets[0]), .peer = {}, .local = {}, .remote = {}, .token = {}};
    meeting.peer.segment_bytes = kPage;
    rendezvous_ = rendezvous;
    peer_.on_idle = [this] { serve_or_end(); };
    const Link::Sides sides{{segment_.bytes, kPage}, kPage, exposes_};
    connection_ = std::make_unique<OfiConnection>(OwnSegment({.segment_bytes = kPage, .memory = segment_.bytes}), link_,
                                                  Peer{}, exposes_);
    const std::lock_guard serving(service_.mutex());
    if (input_.one_in(2)) {
      link_->dial(service_, std::move(meeting), sides, 1);
    } else {
      link_->expect(service_, std::move(meeting), sides);
      link_->accept(service_, Knock(nullptr, nullptr, {}));
    }
    if (!input_.one_in(4)) connect();
    if (!input_.one_in(4)) expose();
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  void run() {
    while (!input_.empty()) {
      act();
      check();
    }
    const std::weak_ptr<Link> link = link_;
    link_.reset();
    reached_.reset();
    connection_.reset();
    require(peer_.is_cut_off());
    require(link.expired());
  }

 private:
  void act() {
    switch (input_.number<std::uint8_t>() % 16) {
      case 0: {
        const auto bytes = staged();
        require(connection_->put(offset(), bytes) <= bytes.size());
        break;
      }
      case 1: {
        const auto bytes = staged();
        (void)connection_->put_and_signal(offset(), bytes, word(), input_.number<std::uint64_t>(), bell());
        break;
      }
      case 2: {
        const auto bytes = staged();
        (void)connection_->get(bytes, offset());
        break;
      }
      case 3:
        (void)connection_->signal(word(), input_.number<std::uint64_t>(), bell());
        break;
      case 4:
        flush();
        break;
      case 5:
        use_bell();
        break;
      case 6:
        connection_->progress(Bell::data);
        break;
      case 7:
        expose();
        break;
      case 8:
        reach();
        break;
      case 9:
        use_reached();
        break;
      case 10:
        connect_or_end();
        break;
      default:
        serve();
    }
  }

  std::uint64_t offset() { return input_.number<std::uint16_t>() % (kPage + 16); }
  std::uint64_t word() { return input_.number<std::uint8_t>() * std::uint64_t{input_.one_in(16) ? 4U : 8U}; }
  Bell bell() { return input_.one_in(2) ? Bell::space : Bell::data; }

  /// The next bytes of a buffer, which follow the last ones until it is used up.
  std::span<std::byte> staged() {
    const std::size_t most = input_.one_in(4) ? kPage : 64;
    const std::size_t bytes = 1 + input_.number<std::uint16_t>() % most;
    if (buffers_.empty() || kPage - at_ < bytes) {
      buffers_.push_back(std::make_unique<Page>());
      at_ = 0;
    }
    const std::size_t from = at_;
    at_ += bytes;
    return {buffers_.back()->bytes + from, bytes};
  }

  void flush() {
    const auto now = std::chrono::steady_clock::now();
    const Result result = connection_->flush(input_.one_in(2) ? now : now + std::chrono::hours(1));
    require(result.ok() || result.error == ETIMEDOUT || (result.error == ECONNRESET && connection_->peer_gone()));
    if (result.error == ETIMEDOUT) return;
    // Everything is complete, or the endpoint is gone.
    require(!peer_.holds_memory());
    buffers_.clear();
  }

  void use_bell() {
    const Bell rung = bell();
    connection_->arm(rung);
    if (input_.one_in(2)) (void)connection_->wait(rung, std::chrono::steady_clock::now());
    (void)connection_->silence(rung);
    connection_->disarm(rung);
  }

  void expose() {
    if (!exposes_) return;
    exposed_.reset();
    peer_.exposed_key = {};
    if (input_.one_in(4)) return;
    exposed_ = connection_->exposure()->expose(exposed_pages());
    peer_.exposed_key = exposed_->pieces().front().key;
  }

  void reach() {
    int error = 0;
    const std::size_t bytes = 1 + input_.number<std::uint16_t>();
    reached_ = connection_->exposure()->reach({input_.number<std::uint64_t>(), 1}, bytes, error);
    require(reached_ != nullptr || error != 0);
  }

  void use_reached() {
    if (reached_ == nullptr || !reached_->has_room()) return;
    const auto bytes = staged();
    if (input_.one_in(3)) {
      (void)reached_->put(offset(), bytes);
    } else if (input_.one_in(2)) {
      (void)reached_->get(bytes, offset());
    } else {
      (void)reached_->signal(word(), input_.number<std::uint64_t>());
    }
  }

  void connect_or_end() {
    const auto choice = input_.number<std::uint8_t>() % 16;
    if (choice == 0) {
      end(input_.number<std::uint8_t>());
    } else if (choice == 1) {
      peers_socket_.reset();
      const std::lock_guard serving(service_.mutex());
      (void)link_->serve(rendezvous_);
    } else {
      const std::lock_guard serving(service_.mutex());
      connect();
    }
  }

  void connect() {
    if (!std::exchange(is_connected_, true)) link_->on_connected();
  }

  void end(int error) {
    const std::lock_guard serving(service_.mutex());
    link_->on_end(error);
  }

  void serve() {
    const std::lock_guard serving(service_.mutex());
    (void)link_->serve(kEndpointDescriptor);
  }

  void serve_or_end() {
    if (input_.empty()) {
      end(0);
    } else {
      serve();
    }
  }

  void check() {
    {
      const std::lock_guard serving(service_.mutex());
      if (input_.one_in(4) || peer_.model.is_broken()) (void)link_->look();
    }
    const bool is_gone = connection_->peer_gone();
    require(is_gone || !peer_.model.is_broken());
    require(!is_gone || peer_.is_cut_off());
    require(std::memcmp(segment_.bytes, peer_.model.segment().data(), kPage) == 0);
  }

  Input& input_;
  Service& service_ = Service::instance();
  const Page segment_;
  const bool exposes_ = !input_.one_in(4);
  HostilePeer peer_{input_, {segment_.bytes, kPage}};
  UniqueFd peers_socket_;
  int rendezvous_ = -1;
  std::shared_ptr<Link> link_ = std::make_shared<Link>();
  std::vector<std::unique_ptr<Page>> buffers_;
  std::size_t at_ = 0;
  bool is_connected_ = false;
  std::unique_ptr<OfiConnection> connection_;
  std::shared_ptr<memory::LocalRegion> exposed_;
  std::shared_ptr<memory::RemoteRegion> reached_;
};

}  // namespace
}  // namespace wherry::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  wherry::fuzz::quieten();
  // What stays open for all inputs.
  (void)wherry::fabric::ofi::Service::instance();
  const auto exposed = wherry::memory::Arena::instance().expose(wherry::fuzz::exposed_pages());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wherry;
  const std::size_t open_before = open_descriptors();
  fuzz::Input input({data, size});
  fuzz::Victim(input).run();
  if (open_descriptors() != open_before) std::abort();
  return 0;
}
