// SPDX-License-Identifier: Apache-2.0
#include "adapters/scif/outlet.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "arch/barrier.hpp"

namespace wherry::scif {

Outlet::Outlet(Line& line, layout::ScifPage& own, layout::ScifPage& peer, std::byte* queue)
    : line_(line),
      heard_(own.leaving),
      told_(peer.arriving),
      producer_(ring::View{queue, layout::kScifQueueBytes}, &own.leaving.head, &peer.arriving.tail) {}

Moved Outlet::send(std::span<const std::byte> bytes, bool block) {
  std::unique_lock turn(turn_, std::defer_lock);
  if (block) turn.lock();
  Moved moved;
  while (true) {
    if (line_.sleepers().woken() || line_.look_for_end()) {
      moved.error = ECONNRESET;
      return moved;
    }
    {
      const std::lock_guard lock(mutex_);
      moved.bytes += push(bytes.subspan(moved.bytes));
      if (producer_.broken()) line_.declare_gone();
      if (moved.bytes == bytes.size() || !block) {
        if (spare(producer_.capacity() - producer_.fill()) == 0) say_full();
        return moved;
      }
    }
    moved.error = wait_for_space();
    if (moved.error != 0) return moved;
  }
}

std::size_t Outlet::push(std::span<const std::byte> bytes) {
  std::size_t free = spare(producer_.capacity() - producer_.fill());
  if (free < bytes.size()) free = space();
  const std::size_t count = producer_.copy_in(bytes.first(std::min(free, bytes.size())));
  if (count == 0) return 0;
  producer_.commit(count);
  tell();
  return count;
}

void Outlet::tell() {
  arch::publish_then_look();  // SCIF-REQUEST: pairs with the fence in Inlet::settle and Inlet::expect
  const std::uint64_t request = heard_.request.load(std::memory_order_acquire);
  const std::uint64_t beyond = producer_.tail() - heard_.quiet.load(std::memory_order_relaxed);
  if (request + 1 == answered_ || static_cast<std::int64_t>(beyond) <= 0) return;
  answered_ = request + 1;
  send_packet(1);
}

bool Outlet::send_packet(std::size_t bytes) {
  static constexpr std::array<std::byte, kFatPacket> kNothing{};
  told_.answered.store(answered_, std::memory_order_relaxed);
  told_.packets.store(++packets_, std::memory_order_release);
  if (::send(line_.descriptor(), kNothing.data(), bytes, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return true;
  // No room in the socket: a peer that takes no packets away, and cannot say that it was not told. Or it is gone.
  told_.packets.store(--packets_, std::memory_order_release);
  return false;
}

void Outlet::say_full() {
  if (space() != 0 || heard_.drained.load(std::memory_order_acquire) < full_) return;
  const std::uint64_t before = full_;
  full_ = packets_ + 1;
  told_.full.store(full_, std::memory_order_release);
  arch::publish_then_look();  // SCIF-FULL: pairs with the fence in Inlet::pull
  if (space() != 0 || !send_packet(kFatPacket)) {
    full_ = before;
    told_.full.store(full_, std::memory_order_release);
    return;
  }
  answered_ = heard_.request.load(std::memory_order_acquire) + 1;
  send_packet(1);
}

int Outlet::wait_for_space() {
  const std::uint64_t head = [this] {
    const std::lock_guard lock(mutex_);
    return producer_.tail() - producer_.fill();
  }();
  if (budget_.look([&] { return heard_.head.load(std::memory_order_acquire) != head; })) return 0;
  settle();
  const int error = line_.sleep(POLLOUT, {});
  return error == ECANCELED ? ECONNRESET : error;
}

bool Outlet::has_space() {
  const std::lock_guard lock(mutex_);
  return space() != 0;
}

void Outlet::settle() {
  const std::lock_guard lock(mutex_);
  say_full();
}

}  // namespace wherry::scif
