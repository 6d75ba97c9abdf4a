// SPDX-License-Identifier: Apache-2.0
#include "message_slots.hpp"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <ctime>
#include <exception>
#include <iterator>
#include <new>
#include <utility>

#include <wherry/error.hpp>

namespace wherry::root {
namespace {

using layout::kRootSlots;
using layout::kRootSlotsPage;

using layout::kRootSlotsPageOffset;
using layout::RootSlot;
using layout::RootSlotsPage;

/// How long a sender waits for a free slot of a receiver that serves other peers first. After that it uses the ring,
/// because the receiver may itself be blocked in a send.
constexpr std::chrono::milliseconds kFreeSlotTimeout{500};

/// Returns the slot size for messages of `bytes`, in whole pages.
std::size_t slot_for(std::size_t bytes) {
  return std::min(kMostInSlot, (bytes + kRootSlotsPage - 1) / kRootSlotsPage * kRootSlotsPage);
}

std::uint64_t slots_offset(std::uint32_t generation) { return generation * layout::kRootSlotsStride; }
std::uint64_t page_offset(std::uint32_t generation) { return kRootSlotsPageOffset + generation * kRootSlotsPage; }

void set(layout::Word& state, RootSlot to) {
  state.store(static_cast<std::uint64_t>(to), std::memory_order_release);  // ROOT-SLOT
}
bool is(const layout::Word& state, RootSlot what) {
  return state.load(std::memory_order_acquire) == static_cast<std::uint64_t>(what);  // ROOT-SLOT
}

/// Not FUTEX_PRIVATE_FLAG: two processes share the word.
long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* time) {
  return ::syscall(SYS_futex, &word, operation, value, time, nullptr, 0);
}

}  // namespace

/// Aligns large memory to huge pages, so that whole 2 MiB blocks of it can become huge pages.
Memory::Memory(std::size_t bytes) {
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  const std::size_t more = bytes < kHuge ? 0 : kHuge;
  void* const room = ::mmap(nullptr, bytes + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) throw Error(ENOMEM, "map memory for large messages", "", "");
  auto* const start = static_cast<std::byte*>(room);
  const std::size_t before = more == 0 ? 0 : (kHuge - reinterpret_cast<std::uintptr_t>(start) % kHuge) % kHuge;
  if (before != 0) ::munmap(start, before);
  if (before != more) ::munmap(start + before + bytes, more - before);
  bytes_ = {start + before, bytes};
}

Memory::~Memory() {
  ::madvise(bytes_.data(), bytes_.size(), MADV_REMOVE);  // the peer may still map the memory: it loses the pages too
  ::munmap(bytes_.data(), bytes_.size());
}

OwnMessageSlots::OwnMessageSlots(Windows windows, std::size_t bytes, std::uint32_t generation)
    : slot_bytes_(slot_for(bytes)), generation_(generation), slots_(kRootSlots * slot_bytes_), page_(kRootSlotsPage) {
  auto* const fresh = new (page_.bytes().data()) RootSlotsPage{};
  fresh->version = layout::kRootSlotsVersion;
  fresh->slot_bytes = slot_bytes_;
  windows.add(slots_.bytes(), Access::read_write, slots_offset(generation));
  windows.add(page_.bytes(), Access::read_write,
              page_offset(generation));  // registered last: a peer that finds the page finds the slots
  for (const Memory* memory : {&slots_, &page_}) {
    ::madvise(memory->bytes().data(), memory->bytes().size(), MADV_DONTFORK);
  }
}

std::span<std::byte> OwnMessageSlots::take(std::uint32_t slot, std::uint32_t bytes) {
  if (slot >= kRootSlots || bytes > slot_bytes_ || taken_[slot].exchange(true)) return {};
  set(page().states[slot].state, RootSlot::taken);
  return slots_.bytes().subspan(slot * slot_bytes_, bytes);
}

void OwnMessageSlots::free(std::uint32_t slot) {
  taken_[slot] = false;
  set(page().states[slot].state, RootSlot::free);  // ROOT-SLOT
  // ROOT-FREED: publish, then look whether the peer sleeps; pairs with PeersMessageSlots::await.
  page().freed.fetch_add(1, std::memory_order_seq_cst);
  // ROOT-FREED
  if (page().awaited.load(std::memory_order_seq_cst) != 0) futex(page().freed, FUTEX_WAKE, INT_MAX, nullptr);
}

void MessageSlotGenerations::offer(Windows windows, std::size_t bytes) noexcept {
  if (bytes < kLeastInSlot || bytes > kMostInSlot || generations_ == layout::kRootSlotsGenerations) return;
  const std::size_t now = slots_.empty() ? 0 : slots_.back()->slot_bytes();
  if (bytes <= now) return;  // the slots are large enough, but none was free
  try {
    // 1/8 more, as messages of one kind differ a little. At least 1.5 times the last size, so that growing messages
    // need few generations.
    const std::size_t wanted = std::max(bytes + bytes / 8, now + now / 2);
    slots_.push_back(std::make_shared<OwnMessageSlots>(windows, wanted, generations_));
    ++generations_;
  } catch (const std::exception&) {
    generations_ = layout::kRootSlotsGenerations;  // no memory, or no windows: add no more slots, use the ring
  }
}

MessageSlotGenerations::Taken MessageSlotGenerations::take(std::uint32_t number, std::uint32_t bytes) {
  const auto found = std::find_if(slots_.begin(), slots_.end(), [&](const std::shared_ptr<OwnMessageSlots>& slots) {
    return slots->generation() == number / kRootSlots;
  });
  if (found == slots_.end()) return {};
  slots_.erase(slots_.begin(), found);
  const std::uint32_t slot = number % kRootSlots;
  const std::span<std::byte> content = slots_.front()->take(slot, bytes);
  if (content.empty()) return {};
  return {.slots = slots_.front(), .slot = slot, .content = content};
}

std::optional<layout::RootInSlot> PeersMessageSlots::write(Windows windows, std::span<const std::byte> message) {
  if (message.size() < kLeastInSlot || message.size() > kMostInSlot) return std::nullopt;
  if (!find(windows, message.size())) return std::nullopt;
  for (std::uint32_t slot = 0; slot < kRootSlots; ++slot) {
    layout::Word& state = page().states[slot].state;
    if (!is(state, RootSlot::free)) continue;
    set(state, RootSlot::filled);
    std::memcpy(slots_.bytes().data() + slot * slot_bytes_, message.data(), message.size());
    // Sending this through the ring also publishes the bytes in the slot.
    return layout::RootInSlot{.mark = layout::kRootInSlot,
                              .slot = generation_ * static_cast<std::uint32_t>(kRootSlots) + slot,
                              .bytes = static_cast<std::uint32_t>(message.size())};
  }
  return std::nullopt;
}

bool PeersMessageSlots::any(RootSlot state) {
  return std::any_of(std::begin(page().states), std::end(page().states),
                     [state](const layout::RootSlotState& slot) { return is(slot.state, state); });
}

bool PeersMessageSlots::await(std::size_t bytes) {
  if (slots_.bytes().empty() || bytes > slot_bytes_) return false;
  const auto end = std::chrono::steady_clock::now() + kFreeSlotTimeout;
  while (!any(RootSlot::free)) {
    const auto left = end - std::chrono::steady_clock::now();
    if (!any(RootSlot::filled) || left <= left.zero()) return false;
    const std::uint32_t freed = page().freed.load(std::memory_order_seq_cst);  // ROOT-FREED
    // ROOT-FREED: announce that this side sleeps, then look; pairs with OwnMessageSlots::free.
    page().awaited.store(1, std::memory_order_seq_cst);
    if (!any(RootSlot::free)) {
      const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
      const timespec time{.tv_sec = 0, .tv_nsec = static_cast<long>(ns)};
      futex(page().freed, FUTEX_WAIT, freed, &time);
    }
    page().awaited.store(0, std::memory_order_seq_cst);  // ROOT-FREED
  }
  return true;
}

/// Whether the peer has slots for `bytes`; maps its next generation if there is one. The peer adds slots after it has
/// received a message through the ring that was too large for those it had.
bool PeersMessageSlots::find(Windows windows, std::size_t bytes) {
  constexpr unsigned kMostLooks = 1000;  // attempts in all; a peer that has none by then adds none
  const bool has_some = !slots_.bytes().empty();
  if (has_some && bytes <= slot_bytes_) return true;
  const std::uint32_t next = has_some ? generation_ + 1 : 0;
  if (next == layout::kRootSlotsGenerations || looked_ == kMostLooks) return false;
  ++looked_;
  return find_generation(windows, next) && bytes <= slot_bytes_;
}

bool PeersMessageSlots::find_generation(Windows windows, std::uint32_t generation) {
  try {
    MappedWindow page = windows.map(page_offset(generation), kRootSlotsPage);
    auto& told = reinterpret_cast<RootSlotsPage*>(page.bytes().data())->slot_bytes;
    const std::uint64_t slot_bytes = std::atomic_ref(told).load(std::memory_order_relaxed);
    if (slot_bytes == 0 || slot_bytes > kMostInSlot || slot_bytes % kRootSlotsPage != 0) return false;
    slots_ = windows.map(slots_offset(generation), kRootSlots * slot_bytes);
    page_ = std::move(page);
    slot_bytes_ = slot_bytes;
    generation_ = generation;
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace wherry::root
