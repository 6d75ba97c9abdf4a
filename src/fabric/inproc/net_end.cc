// SPDX-License-Identifier: Apache-2.0
#include "fabric/inproc/net_end.hpp"

#include <cerrno>
#include <utility>

#include "fabric/check.hpp"
#include "fabric/inproc/net_memory.hpp"
#include "memory/arena.hpp"
#include "memory/arena_region.hpp"

namespace wherry::fabric::inproc {
namespace {

using Word = SendQueue::Word;

std::uint64_t address_of(const std::byte* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

/// Exposed memory. It is registered as long as it is exposed.
class NetLocalRegion final : public memory::LocalRegion {
 public:
  explicit NetLocalRegion(std::shared_ptr<memory::LocalRegion> exposed) : exposed_(std::move(exposed)) {
    for (const Piece& piece : exposed_->pieces()) NetMemory::instance().add({piece.view, piece.bytes});
  }
  ~NetLocalRegion() override {
    if (origin_.inherited()) return;
    for (const Piece& piece : exposed_->pieces()) NetMemory::instance().remove({piece.view, piece.bytes});
  }

  [[nodiscard]] std::span<const Piece> pieces() const override { return exposed_->pieces(); }
  void prepare() noexcept override { exposed_->prepare(); }
  void keep() noexcept override { exposed_->keep(); }

 private:
  const std::shared_ptr<memory::LocalRegion> exposed_;
  const Origin origin_;  ///< a forked child's copy does not use NetMemory, whose lock a parent's thread may have held
};

/// Memory of the peer's arena. Queued items keep its mapping alive.
class NetRegion final : public memory::RemoteRegion {
 public:
  NetRegion(std::shared_ptr<NetLink> link, std::size_t side, memory::ArenaView::Range range)
      : link_(std::move(link)), side_(side), range_(std::move(range)) {}

  bool has_room() override { return link_->has_room(side_); }
  bool put(std::uint64_t offset, std::span<const std::byte> source) override {
    return source.empty() || push({.to = address_of(range_.start + offset), .source = source});
  }
  bool get(std::span<std::byte> destination, std::uint64_t offset) override {
    return destination.empty() || push({.to = address_of(range_.start + offset), .into = destination});
  }
  bool signal(std::uint64_t offset, std::uint64_t value) override {
    return push({.word = Word{address_of(range_.start + offset), value, {}}});
  }

 private:
  bool push(NetLink::Item item) {
    item.keep = range_.chunks;
    return link_->push(side_, std::move(item));
  }

  const std::shared_ptr<NetLink> link_;
  const std::size_t side_;
  const memory::ArenaView::Range range_;
};

/// Memory that is given by its address, and may be unmapped: accesses do not fault, and bypass the network. Only a
/// signal waits for earlier puts.
class PrivateNetRegion final : public memory::RemoteRegion {
 public:
  PrivateNetRegion(std::shared_ptr<NetLink> link, std::size_t side, std::uint64_t address)
      : link_(std::move(link)), side_(side), memory_(address) {}

  bool put(std::uint64_t offset, std::span<const std::byte> source) override { return memory_.put(offset, source); }
  bool get(std::span<std::byte> destination, std::uint64_t offset) override { return memory_.get(destination, offset); }
  bool signal(std::uint64_t offset, std::uint64_t value) override {
    return link_->flush(side_, {}).ok() && memory_.signal(offset, value);
  }

 private:
  const std::shared_ptr<NetLink> link_;
  const std::size_t side_;
  memory::OwnRegion memory_;
};

}  // namespace

NetEnd::NetEnd(const std::shared_ptr<NetPair>& pair, std::size_t side, Address peer_address)
    : End(pair, side, Peer{.address = std::move(peer_address)}), link_(pair->link), side_(side) {
  NetMemory::instance().add(segment());
}

NetEnd::~NetEnd() {
  if (origin_.inherited()) return;
  link_->leave(side_);
  NetMemory::instance().remove(segment());
}

std::size_t NetEnd::put(std::uint64_t offset, std::span<const std::byte> source) {
  if (source.empty() || !in_range(offset, source.size(), remote_bytes()) || peer_gone()) return 0;
  return link_->put(side_, far_address(offset), source);
}

bool NetEnd::put_and_signal(std::uint64_t offset, std::span<const std::byte> source, std::uint64_t word,
                            std::uint64_t value, Bell bell) {
  if (!in_range(offset, source.size(), remote_bytes()) || !is_word(word, remote_bytes()) || peer_gone()) return false;
  return link_->push(side_,
                     {.to = far_address(offset), .source = source, .word = Word{far_address(word), value, bell}});
}

std::shared_ptr<std::byte[]> NetEnd::buffer(std::size_t bytes) {
  auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  NetMemory::instance().add({memory.get(), bytes});
  return {memory.release(), [bytes, origin = Origin()](std::byte* registered) {
            if (origin.inherited()) return;
            NetMemory::instance().remove({registered, bytes});
            delete[] registered;
          }};
}

bool NetEnd::get(std::span<std::byte> destination, std::uint64_t offset) {
  if (!in_range(offset, destination.size(), remote_bytes()) || peer_gone()) return false;
  return destination.empty() || link_->push(side_, {.to = far_address(offset), .into = destination});
}

bool NetEnd::signal(std::uint64_t offset, std::uint64_t value, Bell bell) {
  if (!is_word(offset, remote_bytes()) || peer_gone()) return false;
  return link_->push(side_, {.word = Word{far_address(offset), value, bell}});
}

Result NetEnd::flush(Deadline deadline) {
  return origin_.inherited() ? Result::failure(ECONNRESET) : link_->flush(side_, deadline);
}

void NetEnd::progress(Bell bell) {
  if (!origin_.inherited()) link_->progress(side_, bell);
}

void NetEnd::end_progress(Bell bell) {
  if (!origin_.inherited()) link_->end_progress(side_, bell);
}

/// Announces the sleep in this side's own page, because over a network no memory is visible to both sides.
void NetEnd::arm(Bell bell) {
  if (origin_.inherited()) return;
  link_->end_progress(side_, bell);
  silence(bell);
  layout::Word& epoch = own().page.waiters[index(bell)].epoch;
  epoch.store((epoch.load(std::memory_order_relaxed) + 1) | 1, std::memory_order_release);  // SLEEP
  arch::publish_then_look();  // SLEEP: pairs with the fence in NetLink::store
}

void NetEnd::disarm(Bell bell) {
  if (origin_.inherited()) return;
  layout::Word& epoch = own().page.waiters[index(bell)].epoch;
  epoch.store((epoch.load(std::memory_order_relaxed) + 1) & ~std::uint64_t{1}, std::memory_order_release);  // SLEEP
}

bool NetEnd::silence(Bell bell) { return !origin_.inherited() && End::silence(bell); }

Wake NetEnd::wait(Bell bell, Deadline deadline) { return origin_.inherited() ? Wake::gone : End::wait(bell, deadline); }

void NetEnd::notify_self(Bell bell) {
  if (!origin_.inherited()) End::notify_self(bell);
}

bool NetEnd::peer_gone() { return origin_.inherited() || link_->is_gone(side_); }

std::shared_ptr<memory::LocalRegion> NetEnd::expose(std::span<std::byte> memory) {
  return std::make_shared<NetLocalRegion>(End::expose(memory));
}

std::shared_ptr<memory::RemoteRegion> NetEnd::reach_arena(std::uint64_t place, std::size_t bytes) {
  auto range = memory::Arena::instance().view()->map(place, bytes);
  if (range.start == nullptr) return reach_private(0);
  return std::make_shared<NetRegion>(link_, side_, std::move(range));
}

std::shared_ptr<memory::RemoteRegion> NetEnd::reach_private(std::uint64_t address) {
  return std::make_shared<PrivateNetRegion>(link_, side_, address);
}

}  // namespace wherry::fabric::inproc
