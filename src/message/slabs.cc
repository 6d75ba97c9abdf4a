// SPDX-License-Identifier: Apache-2.0
#include "message/slabs.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace wherry::message {

Slabs::Slabs(std::shared_ptr<memory::SharedMemory> memory)
    : memory_(std::move(memory)), start_(memory_->bytes().data()), bytes_(memory_->bytes().size()) {
  const auto shift = static_cast<unsigned>(std::bit_width(bytes_) - 1);
  grain_shift_ = std::max(kMinGrainShift, shift > kMostUnitsShift ? shift - kMostUnitsShift : 0U);
  top_order_ = shift - grain_shift_;
  // calloc: the system zeroes each page at its first use. Zero is State::inside.
  units_.reset(static_cast<Unit*>(std::calloc(std::size_t{1} << top_order_, sizeof(Unit))));
  if (units_ == nullptr) throw std::bad_alloc();
  apart_.fill(kNone);
  put_apart(0, top_order_);
}

unsigned Slabs::order_of(std::size_t bytes) const noexcept {
  const std::size_t units = bytes == 0 ? 1 : ((bytes - 1) >> grain_shift_) + 1;
  return static_cast<unsigned>(std::bit_width(units - 1));
}

Slabs::Block Slabs::use(Block block) noexcept {
  units_[block].state = State::used;
  units_[block].users = 1;
  peak_ = std::max(peak_, ++in_use_);
  return block;
}

Slabs::Block Slabs::take_ready(std::size_t bytes) noexcept {
  if (bytes > bytes_) return kNone;
  const Block block = pop_ready(order_of(bytes));
  return block == kNone ? kNone : use(block);
}

Slabs::Block Slabs::pop_ready(unsigned order) noexcept {
  const Block block = ready_[order].first;
  if (block == kNone) return kNone;
  ready_[order].first = units_[block].next;
  --ready_count_;
  return block;
}

Slabs::Block Slabs::take(std::size_t bytes) noexcept {
  if (bytes > bytes_) return kNone;
  if (const Block ready = take_ready(bytes); ready != kNone) return ready;
  const unsigned order = order_of(bytes);
  Block block = split(order);
  if (block == kNone) {
    merge_ready();
    block = split(order);
  }
  return block == kNone ? kNone : use(block);
}

void Slabs::free(Block block) noexcept {
  Unit& unit = units_[block];
  Queue& queue = ready_[unit.order];
  unit.state = State::ready;
  unit.next = kNone;
  (queue.first == kNone ? queue.first : units_[queue.last].next) = block;
  queue.last = block;
  ++ready_count_;
  --in_use_;
  if (++freed_ % kWindow == 0) last_peak_ = std::exchange(peak_, in_use_);
  if (ready_count_ + in_use_ > std::max(peak_, last_peak_) + kMostSpare) merge(pop_ready(unit.order));
}

/// Makes a block of `order` from the smallest block that is apart and at least as large.
Slabs::Block Slabs::split(unsigned order) noexcept {
  unsigned from = order;
  while (from <= top_order_ && apart_[from] == kNone) ++from;
  if (from > top_order_) return kNone;
  const Block block = apart_[from];
  unlink(block);
  while (from > order) {
    --from;
    put_apart(block + (Block{1} << from), from);
  }
  units_[block].order = static_cast<std::uint8_t>(order);
  return block;
}

void Slabs::merge_ready() noexcept {
  for (unsigned order = 0; order <= top_order_; ++order) {
    for (Block block = pop_ready(order); block != kNone; block = pop_ready(order)) merge(block);
  }
}

void Slabs::merge(Block block) noexcept {
  unsigned order = units_[block].order;
  while (order < top_order_) {
    const Block buddy = block ^ (Block{1} << order);
    if (units_[buddy].state != State::apart || units_[buddy].order != order) break;
    unlink(buddy);
    units_[std::max(block, buddy)].state = State::inside;
    block = std::min(block, buddy);
    ++order;
  }
  put_apart(block, order);
}

void Slabs::put_apart(Block block, unsigned order) noexcept {
  Unit& unit = units_[block];
  unit.state = State::apart;
  unit.order = static_cast<std::uint8_t>(order);
  unit.previous = kNone;
  unit.next = std::exchange(apart_[order], block);
  if (unit.next != kNone) units_[unit.next].previous = block;
}

void Slabs::unlink(Block block) noexcept {
  const Unit& unit = units_[block];
  (unit.previous == kNone ? apart_[unit.order] : units_[unit.previous].next) = unit.next;
  if (unit.next != kNone) units_[unit.next].previous = unit.previous;
}

}  // namespace wherry::message
