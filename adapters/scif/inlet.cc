// SPDX-License-Identifier: Apache-2.0
#include "adapters/scif/inlet.hpp"

#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>

#include "arch/barrier.hpp"

namespace wherry::scif {
namespace {

/// A sender in the middle of sending a packet is waited for so long; then the next call will take it.
constexpr std::chrono::milliseconds kPacketPatience{2};
/// More packets than a sender that keeps the rules ever has on the way.
constexpr std::uint64_t kMostPackets = 64;

}  // namespace

Inlet::Inlet(Line& line, layout::ScifPage& own, layout::ScifPage& peer, std::byte* queue)
    : line_(line),
      heard_(own.arriving),
      told_(peer.leaving),
      consumer_(ring::View{queue, layout::kScifQueueBytes}, &own.arriving.tail, &peer.leaving.head) {}

Moved Inlet::receive(std::span<std::byte> buffer, bool block) {
  std::unique_lock turn(turn_, std::defer_lock);
  if (block) turn.lock();
  Moved moved;
  for (bool ended = false;;) {
    {
      const std::lock_guard lock(mutex_);
      moved.bytes += pull(buffer.subspan(moved.bytes));
      if (consumer_.broken()) line_.declare_gone();
      if (moved.bytes == buffer.size()) return moved;
      // What the peer sent before its end was visible when the end was: the queue has been looked at since.
      if (ended) moved.error = ECONNRESET;
      if (ended || (moved.bytes != 0 && !block)) return moved;
    }
    ended = line_.sleepers().woken() || line_.look_for_end();
    if (ended) continue;
    if (!block) return moved;
    moved.error = wait_for_data(buffer.size() - moved.bytes);
    if (moved.error != 0) return moved;
    ended = line_.gone() || line_.sleepers().woken();
  }
}

std::size_t Inlet::pull(std::span<std::byte> buffer) {
  std::size_t count = 0;
  // Twice, because a look at what is known already need not be a look at all that is there.
  for (int pass = 0; pass < 2 && count < buffer.size(); ++pass) count += consumer_.copy_out(buffer.subspan(count));
  if (count != 0) {
    consumer_.return_credit();
    arch::publish_then_look();  // SCIF-FULL: pairs with the fence in Outlet::say_full
    take_packets(heard_.full.load(std::memory_order_acquire), true);
  }
  if (consumer_.known_fill() == 0) settle_locked();
  return count;
}

void Inlet::take_packets(std::uint64_t up_to, bool wait) {
  if (static_cast<std::int64_t>(up_to - taken_) <= 0) return;
  if (up_to - taken_ > kMostPackets) return line_.declare_gone();
  const auto give_up = std::chrono::steady_clock::now() + kPacketPatience;
  while (taken_ < up_to) {
    std::byte nothing{};
    if (::recv(line_.descriptor(), &nothing, sizeof nothing, MSG_DONTWAIT) > 0) {
      ++taken_;
      continue;
    }
    if (!wait || line_.ask_for_end() || std::chrono::steady_clock::now() > give_up) break;
    // Announced but not there: it is being sent this moment, or has just been called off.
    if (heard_.full.load(std::memory_order_acquire) < up_to) break;
    ::sched_yield();
  }
  told_.drained.store(taken_, std::memory_order_release);
}

void Inlet::settle_locked() {
  const bool answered = heard_.answered.load(std::memory_order_acquire) == request_ + 1;
  std::uint64_t packets = heard_.packets.load(std::memory_order_acquire);
  seen_.store(consumer_.head(), std::memory_order_relaxed);
  if (!answered && packets == taken_) return;
  if (answered) {
    told_.request.store(++request_, std::memory_order_release);
    arch::publish_then_look();  // SCIF-REQUEST: pairs with the fence in Outlet::tell
    packets = heard_.packets.load(std::memory_order_acquire);
  }
  if (consumer_.fill() == 0) {
    take_packets(packets, false);
  } else if (packets - taken_ > 1) {
    take_packets(packets - 1, false);  // one is enough to say that something is there
  }
}

/// The sender need not send a packet for the next so many bytes: they are waited for.
void Inlet::expect(std::size_t bytes) {
  told_.quiet.store(consumer_.head() + bytes, std::memory_order_relaxed);
  arch::publish_then_look();  // SCIF-REQUEST: pairs with the fence in Outlet::tell
}

int Inlet::wait_for_data(std::size_t want) {
  const auto nothing_came = [&](std::size_t expected) {
    const std::lock_guard lock(mutex_);
    expect(expected);
    return consumer_.fill() == 0;
  };
  if (budget_.budget().count() != 0) {
    if (!nothing_came(want)) return 0;
    if (budget_.look([&] { return stirs() || line_.sleepers().woken(); })) return 0;
  }
  if (!nothing_came(0)) return 0;
  settle();
  if (has_data()) return 0;
  const int error = line_.sleep(POLLIN, {});
  return error == ECANCELED ? ECONNRESET : error;
}

bool Inlet::has_data() {
  const std::lock_guard lock(mutex_);
  const bool some = consumer_.fill() != 0;
  if (!some) seen_.store(consumer_.head(), std::memory_order_relaxed);
  if (consumer_.broken()) line_.declare_gone();
  return some;
}

void Inlet::settle() {
  const std::lock_guard lock(mutex_);
  if (consumer_.fill() == 0) settle_locked();
}

}  // namespace wherry::scif
