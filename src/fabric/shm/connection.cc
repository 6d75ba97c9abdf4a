// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/connection.hpp"

#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "arch/copy.hpp"
#include "base/beyond_select.hpp"
#include "base/not_cancelled.hpp"
#include "fabric/arena.hpp"
#include "fabric/arena_reached.hpp"
#include "fabric/check.hpp"
#include "fabric/shm/private_reached.hpp"

namespace wherry::fabric::shm {

namespace {

EventBell bell_of(const Offer& offer) { return offer.bells ? EventBell().beyond_select() : EventBell(UniqueFd()); }

}  // namespace

OwnSide::OwnSide(const Offer& offer)
    : memory(offer.segment_bytes, offer.memory),
      shared(offer.shared),
      arena(offer.exposes ? Arena::instance().view() : nullptr),
      bells{bell_of(offer), bell_of(offer)},
      greeting(offer.greeting) {}

std::vector<int> OwnSide::descriptors() const {
  std::vector<int> all{memory.descriptor()};
  for (const EventBell& bell : bells) {
    if (bell.descriptor() >= 0) all.push_back(bell.descriptor());
  }
  if (shared != nullptr) all.push_back(shared->descriptor());
  if (arena != nullptr) all.push_back(arena->descriptor());
  return all;
}

layout::ShmHello OwnSide::hello(std::uint16_t node, std::uint16_t port) const {
  layout::ShmHello hello{.magic = layout::kShmMagic,
                         .version = layout::kShmVersion,
                         .node = node,
                         .port = port,
                         .features = (arch::takes_part_in_interrupts() ? layout::kShmInterrupts : 0) |
                                     (bells[0].descriptor() < 0 ? layout::kShmNoBells : 0),
                         .segment_bytes = memory.segment().size(),
                         .greeting = {},
                         .shared_bytes = shared == nullptr ? 0 : shared->bytes().size(),
                         .arena_bytes = arena == nullptr ? 0 : arena->bytes()};
  static_assert(sizeof hello.greeting == sizeof(Greeting));
  std::memcpy(hello.greeting, greeting.data(), greeting.size());
  return hello;
}

ShmConnection::ShmConnection(OwnSide own, UniqueFd socket, Packet packet, Peer peer)
    : memory_(std::move(own.memory)),
      exposes_(own.arena != nullptr),
      remote_bytes_(packet.hello.segment_bytes),
      socket_(std::move(socket)),
      bells_{OwnBell(std::move(own.bells[0])), OwnBell(std::move(own.bells[1]))},
      peer_bells_{EventBell(std::move(packet.descriptors[1])).beyond_select(),
                  EventBell(std::move(packet.descriptors[2])).beyond_select()},
      peer_(std::move(peer)) {
  int error = 0;
  peer_mapping_ = map_peers_memory(packet.descriptors[0].get(), remote_bytes_, error);
  if (error == 0 && packet.hello.shared_bytes != 0) {
    shown_ = map_shown_memory(packet.descriptors[kSharedPlace].get(), packet.hello.shared_bytes, error);
  }
  if (error == 0 && packet.hello.arena_bytes != 0) {
    peers_arena_ =
        view_arena(beyond_select(std::move(packet.descriptors[kArenaPlace])), packet.hello.arena_bytes, error);
  }
  if (error != 0) {
    throw Error(error, "map the memory of", peer_.address.to_string(),
                error == EPROTO ? "it is not a sealed memfd of the size announced; the connection is refused"
                                : "raise the address space limit (ulimit -v), or use smaller rings or pools");
  }
  private_memory_.emplace(peer_.pid, reinterpret_cast<layout::BellPage*>(peer_mapping_.start())->recognition);
  remote_ = peer_mapping_.start() + layout::kBellPageBytes;
  std::memcpy(greeting_.data(), packet.hello.greeting, greeting_.size());
  const bool interrupts = (packet.hello.features & layout::kShmInterrupts) != 0 && arch::takes_part_in_interrupts();
  open_doors(memory_.page(), peers_page(), interrupts);
}

std::size_t ShmConnection::put(std::uint64_t offset, std::span<const std::byte> source) {
  if (!in_range(offset, source.size(), remote_bytes_) || gone_.load(std::memory_order_relaxed)) return 0;
  arch::copy(remote_ + offset, source.data(), source.size());
  return source.size();
}

bool ShmConnection::get(std::span<std::byte> destination, std::uint64_t offset) {
  if (!in_range(offset, destination.size(), remote_bytes_) || gone_.load(std::memory_order_relaxed)) return false;
  arch::copy(destination.data(), remote_ + offset, destination.size());
  return true;
}

bool ShmConnection::signal(std::uint64_t offset, std::uint64_t value, Bell bell) {
  if (!is_word(offset, remote_bytes_) || gone_.load(std::memory_order_relaxed)) return false;
  // SIGNAL, outside: releases every earlier put of this thread; pairs with whatever acquire reads the word at the peer.
  reinterpret_cast<layout::Word*>(remote_ + offset)->store(value, std::memory_order_release);
  announce(bell);
  return true;
}

std::shared_ptr<Exposed> ShmConnection::expose(std::span<std::byte> memory) {
  return exposes_ ? Arena::instance().expose(memory) : Connection::expose(memory);
}

std::shared_ptr<Reached> ShmConnection::reach(const Key& key, std::size_t bytes, int& error) {
  error = ENXIO;
  if (peers_arena_ == nullptr || !peers_arena_->may_hold(key, bytes)) return nullptr;
  error = 0;
  if (kind_of(key) == KeyKind::arena) return std::make_shared<ArenaReached>(peers_arena_, key.place, bytes);
  return std::make_shared<PrivateReached>(*this, key.place);
}

layout::BellPage& ShmConnection::peers_page() const {
  return *reinterpret_cast<layout::BellPage*>(peer_mapping_.start());
}

bool ShmConnection::silence(Bell which) {
  OwnBell& bell = bells_[index(which)];
  const bool rang = bell.event.silence();
  if (rang) bell.may_ring.store(false, std::memory_order_relaxed);
  return rang;
}

void ShmConnection::arm(Bell which) {
  OwnBell& bell = bells_[index(which)];
  // A ring left over from an earlier sleep would only cost a spurious wake-up of a blocked thread, but would keep a
  // polled descriptor readable for ever.
  if (bell.may_ring.load(std::memory_order_relaxed)) silence(which);
  bell.may_ring.store(true, std::memory_order_relaxed);
  bell.epoch = (bell.epoch + 1) | 1;
  // SLEEP release; pairs with the acquire in announce().
  peers_page().sleepers[index(which)].epoch.store(bell.epoch, std::memory_order_release);
  fence_of_arm(memory_.page().publishers[index(which)].unfenced);  // SLEEP: pairs with announce()
}

void ShmConnection::disarm(Bell which) {
  OwnBell& bell = bells_[index(which)];
  bell.epoch = (bell.epoch + 1) & ~std::uint64_t{1};
  peers_page().sleepers[index(which)].epoch.store(bell.epoch, std::memory_order_release);  // SLEEP
}

Wake ShmConnection::wait(Bell which, Deadline deadline) {
  std::array<pollfd, 2> polled{pollfd{bells_[index(which)].event.descriptor(), POLLIN, 0},
                               pollfd{socket_.get(), POLLIN, 0}};
  while (true) {
    const int ready = wait_for_events(polled, deadline);
    if (ready == 0) return Wake::timeout;
    if (ready < 0) continue;  // EINTR: the time left is taken anew.
    const bool readable = (polled[0].revents & POLLIN) != 0;
    if (readable && silence(which)) return Wake::rung;
    if (peer_gone()) return Wake::gone;
    if (readable) return Wake::rung;  // Claimed, or by a ring that came late: who is woken looks for itself.
  }
}

int ShmConnection::descriptor(Bell which) {
  OwnBell& bell = bells_[index(which)];
  if (bell.poller.valid()) return bell.poller.get();
  UniqueFd poller(::epoll_create1(EPOLL_CLOEXEC));
  bool good = poller.valid();
  for (const int fd : {bell.event.descriptor(), socket_.get()}) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    good = good && ::epoll_ctl(poller.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  }
  if (!good) {
    throw Error(errno, "make a descriptor for", peer_.address.to_string(), "raise the limit of open files (ulimit -n)");
  }
  bell.poller = std::move(poller);
  return bell.poller.get();
}

void ShmConnection::ring(Bell bell) { peer_bells_[index(bell)].ring(); }

void ShmConnection::ring_own(Bell which) {
  OwnBell& bell = bells_[index(which)];
  bell.may_ring.store(true, std::memory_order_relaxed);
  bell.event.ring();
}

bool ShmConnection::peer_gone() {
  if (gone_.load(std::memory_order_acquire)) return true;  // PEER-GONE
  if (!socket_.valid()) return false;                      // the endpoint that has the socket watches it
  const NotCancelled here;
  std::byte unexpected{};
  // Peeked at only: what one direction has seen must stay there for the other, which may be asleep on the same socket.
  const ssize_t n = ::recv(socket_.get(), &unexpected, sizeof unexpected, MSG_DONTWAIT | MSG_PEEK);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  // The end, an error, or a packet where the protocol knows none: in each case no peer that can be talked to.
  // PEER-GONE release: the kernel closed its socket after its last store, so what it had published is visible.
  gone_.store(true, std::memory_order_release);
  return true;
}

}  // namespace wherry::fabric::shm
