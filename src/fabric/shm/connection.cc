// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/connection.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <wherry/error.hpp>

#include "arch/copy.hpp"
#include "base/move_above_fd_setsize.hpp"
#include "base/not_cancelled.hpp"
#include "fabric/check.hpp"
#include "fabric/shm/private_region.hpp"
#include "memory/arena.hpp"
#include "memory/arena_region.hpp"

namespace wherry::fabric::shm {

OwnSide::OwnSide(const Offer& offer)
    : compact(offer.compact),
      memory(offer.segment_bytes, offer.memory, offer.compact),
      shared(offer.shared),
      arena(offer.exposes ? memory::Arena::instance().view() : nullptr),
      greeting(offer.greeting) {
  if (!offer.bells) return;
  for (auto& bell : bells) bell = std::make_unique<OwnBell>();
}

std::vector<int> OwnSide::descriptors() const {
  std::vector<int> all{memory.descriptor()};
  if (shared != nullptr) all.push_back(shared->descriptor());
  if (arena != nullptr) all.push_back(arena->descriptor());
  return all;
}

layout::ShmHello OwnSide::hello(std::uint16_t node, std::uint16_t port, std::uint64_t companion) const {
  layout::ShmHello hello{.magic = layout::kShmMagic,
                         .version = layout::kShmVersion,
                         .node = node,
                         .port = port,
                         .features = (arch::takes_part_in_interrupts() ? layout::kShmInterrupts : 0) |
                                     (bells[0] == nullptr ? layout::kShmNoBells : 0) |
                                     (compact ? layout::kShmCompact : 0),
                         .segment_bytes = memory.segment().size(),
                         .greeting = {},
                         .shared_bytes = shared == nullptr ? 0 : shared->bytes().size(),
                         .arena_bytes = arena == nullptr ? 0 : arena->bytes(),
                         .companion = companion};
  static_assert(sizeof hello.greeting == sizeof(Greeting));
  std::memcpy(hello.greeting, greeting.data(), greeting.size());
  return hello;
}

PeersSide::PeersSide(Packet packet, const Address& peer)
    : compact((packet.hello.features & layout::kShmCompact) != 0),
      has_bells((packet.hello.features & layout::kShmNoBells) == 0),
      takes_interrupts((packet.hello.features & layout::kShmInterrupts) != 0),
      segment_bytes(packet.hello.segment_bytes) {
  std::memcpy(greeting.data(), packet.hello.greeting, greeting.size());
  int error = 0;
  memory = map_peers_memory(packet.descriptors[0].get(), segment_bytes, error, compact);
  if (error == 0 && packet.hello.shared_bytes != 0) {
    shown = map_shown_memory(packet.descriptors[kSharedPlace].get(), packet.hello.shared_bytes, error);
  }
  if (error == 0 && packet.hello.arena_bytes != 0) {
    arena = memory::view_arena(move_above_fd_setsize(std::move(packet.descriptors[kArenaPlace])),
                               packet.hello.arena_bytes, error);
  }
  if (error == 0) return;
  throw Error(error, "map the memory of", peer.to_string(),
              error == EPROTO ? "it is not a sealed memfd of the size announced; the connection is refused"
                              : "raise the address space limit (ulimit -v), or use smaller rings or pools");
}

ShmConnection::ShmConnection(OwnSide own, PeersSide peers, UniqueFd socket, Peer peer, UniqueFd companion)
    : memory_(std::move(own.memory)),
      peer_mapping_(std::move(peers.memory)),
      shown_(std::move(peers.shown)),
      exposes_(own.arena != nullptr),
      peers_arena_(std::move(peers.arena)),
      remote_(peer_mapping_.start() + layout::segment_place(peers.compact)),
      remote_bytes_(peers.segment_bytes),
      sockets_{std::move(socket), std::move(companion)},
      peer_has_bells_(peers.has_bells),
      peer_(std::move(peer)),
      greeting_(peers.greeting) {
  private_memory_.emplace(peer_.pid, peers_page().recognition);
  start_notifications(memory_.page(), peers_page(), peers.takes_interrupts && arch::takes_part_in_interrupts());
  take_bells(std::move(own.bells));
}

void ShmConnection::take_bells(std::array<std::unique_ptr<OwnBell>, 2> bells) {
  for (const Bell which : kBells) {
    Sleep& sleep = sleeps_[index(which)];
    sleep.bell = std::move(bells[index(which)]);
    // Without a companion the peer never rings the bell for space. The bell then watches the data socket for its end.
    const bool rings = sockets_[index(which)].valid();
    const int socket = sockets_[index(rings ? which : Bell::data)].get();
    if (sleep.bell != nullptr && socket >= 0) sleep.bell->listen_to(socket, rings);
  }
  if (sleeps_[0].bell == nullptr && !peer_has_bells_) sockets_[index(Bell::space)].reset();
}

std::size_t ShmConnection::put(std::uint64_t offset, std::span<const std::byte> source) {
  if (!in_range(offset, source.size(), remote_bytes_) || gone_.load(std::memory_order_relaxed)) return 0;
  arch::copy_into(remote_ + offset, source.data(), source.size());
  return source.size();
}

bool ShmConnection::get(std::span<std::byte> destination, std::uint64_t offset) {
  if (!in_range(offset, destination.size(), remote_bytes_) || gone_.load(std::memory_order_relaxed)) return false;
  arch::copy_out_of(destination.data(), remote_ + offset, destination.size());
  return true;
}

bool ShmConnection::signal(std::uint64_t offset, std::uint64_t value, Bell bell) {
  if (!is_word(offset, remote_bytes_) || gone_.load(std::memory_order_relaxed)) return false;
  // SIGNAL, outside: releases every earlier put of this thread; pairs with the acquire by which the peer reads the
  // word.
  reinterpret_cast<layout::Word*>(remote_ + offset)->store(value, std::memory_order_release);
  announce(bell);
  return true;
}

std::shared_ptr<memory::LocalRegion> ShmConnection::expose(std::span<std::byte> memory) {
  if (!exposes_) refuse(peer_);
  return memory::Arena::instance().expose(memory);
}

std::shared_ptr<memory::RemoteRegion> ShmConnection::reach(const memory::RemoteKey& key, std::size_t bytes,
                                                           int& error) {
  error = ENXIO;
  if (peers_arena_ == nullptr || !peers_arena_->may_hold(key, bytes)) return nullptr;
  error = 0;
  if (memory::kind_of(key) == memory::KeyKind::arena)
    return std::make_shared<memory::ArenaRegion>(peers_arena_, key.place, bytes);
  return std::make_shared<PrivateRegion>(*private_memory_, key.place);
}

layout::BellPage& ShmConnection::peers_page() const {
  return *reinterpret_cast<layout::BellPage*>(peer_mapping_.start());
}

bool ShmConnection::silence(Bell which) {
  Sleep& sleep = sleeps_[index(which)];
  if (sleep.bell == nullptr) return false;
  const OwnBell::Heard heard = sleep.bell->silence();
  if (heard == OwnBell::Heard::notification) sleep.may_ring.store(false, std::memory_order_relaxed);
  if (heard == OwnBell::Heard::end) gone_.store(true, std::memory_order_release);  // PEER-GONE
  return heard == OwnBell::Heard::notification;
}

void ShmConnection::arm(Bell which) {
  Sleep& sleep = sleeps_[index(which)];
  // Silences a ring left over from an earlier sleep. A blocked thread would only wake up once too often, but a polled
  // descriptor would stay readable.
  const bool may_ring = sleep.may_ring.load(std::memory_order_relaxed);
  if (may_ring) silence(which);
  sleep.saw_socket = may_ring && sleep.bell != nullptr && sleep.bell->rings();
  sleep.may_ring.store(true, std::memory_order_relaxed);
  sleep.epoch = (sleep.epoch + 1) | 1;
  // SLEEP release; pairs with the acquire in announce().
  peers_page().waiters[index(which)].epoch.store(sleep.epoch, std::memory_order_release);
  fence_of_arm(memory_.page().publishers[index(which)].unfenced);  // SLEEP: pairs with announce()
}

void ShmConnection::disarm(Bell which) {
  Sleep& sleep = sleeps_[index(which)];
  sleep.epoch = (sleep.epoch + 1) & ~std::uint64_t{1};
  peers_page().waiters[index(which)].epoch.store(sleep.epoch, std::memory_order_release);  // SLEEP
}

Wake ShmConnection::wait(Bell which, Deadline deadline) {
  OwnBell& bell = *sleeps_[index(which)].bell;
  while (true) {
    if (!bell.await(deadline)) return Wake::timeout;
    if (silence(which)) return Wake::rung;
    if (peer_gone()) return Wake::gone;
    bell.hide_own_ring();
  }
}

int ShmConnection::descriptor(Bell which) { return sleeps_[index(which)].bell->descriptor(); }
int ShmConnection::event_descriptor(Bell which) { return sleeps_[index(which)].bell->event_descriptor(); }

bool ShmConnection::notify(Bell which) {
  const int socket = sockets_[index(which)].get();
  return !peer_has_bells_ || socket < 0 || peer_bells_[index(which)].notify(socket);
}

void ShmConnection::notify_self(Bell which) {
  Sleep& sleep = sleeps_[index(which)];
  sleep.may_ring.store(true, std::memory_order_relaxed);
  sleep.bell->notify();
}

bool ShmConnection::peer_gone() {
  if (gone_.load(std::memory_order_acquire)) return true;  // PEER-GONE
  const int socket = sockets_[index(Bell::data)].get();
  if (socket < 0) return false;  // the caller has kept the socket and watches it
  const NotCancelled here;
  // Not recv(): the socket may contain rings, which belong to the thread that sleeps on the bell.
  pollfd polled{.fd = socket, .events = POLLRDHUP, .revents = 0};
  const int ended = ::poll(&polled, 1, 0);
  std::byte unexpected{};
  // If the kernel refuses poll(), recv() still shows an end that has no rings before it.
  if (ended == 0 || (ended < 0 && ::recv(socket, &unexpected, 1, MSG_DONTWAIT | MSG_PEEK) != 0)) return false;
  // PEER-GONE release: the kernel closed its socket after its last store, so what it had published is visible.
  gone_.store(true, std::memory_order_release);
  return true;
}

bool ShmConnection::peer_gone_when_armed(Bell which) {
  if (gone_.load(std::memory_order_acquire)) return true;  // PEER-GONE
  return !sleeps_[index(which)].saw_socket && peer_gone();
}

}  // namespace wherry::fabric::shm
