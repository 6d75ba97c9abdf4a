// SPDX-License-Identifier: Apache-2.0
#include "file/mount/write_ring.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "file/mount/fault_points.hpp"

namespace wherry::file::mount {
namespace {

using layout::kWriteRingBytes;
using layout::kWriteRingMemory;
using layout::kWriteRingSealed;
using layout::WriteRingHeader;
using layout::WriteRingRecord;

}  // namespace

WriteRing::~WriteRing() {
  if (ended_) ended_();
}

std::unique_ptr<WriteRing> WriteRing::map(UniqueFd memory) {
  OfferedMemory mapped(std::move(memory), kWriteRingMemory);
  if (mapped.begin() == nullptr) return nullptr;
  std::unique_ptr<WriteRing> ring(new WriteRing(std::move(mapped)));
  const WriteRingHeader& header = ring->header();
  const bool is_one = header.version == layout::kWriteRingVersion && header.magic == layout::kWriteRingMagic;
  return is_one ? std::move(ring) : nullptr;
}

/// The random number shows that the descriptor is that of the program that asks. Its thread may have been killed, and
/// its number given to another.
WriteRing::Taken WriteRing::take(pid_t thread, const layout::WriteRingOffer& offer) {
  if (offer.version != layout::kWriteRingVersion) return {.error = EINVAL};
  UniqueFd memory = take_memory(process_of(thread), offer.descriptor);
  if (!memory.valid()) return {.error = EPERM};
  Taken taken{.ring = map(std::move(memory))};
  if (taken.ring == nullptr || std::memcmp(taken.ring->header().random, offer.random, sizeof offer.random) != 0) {
    taken.ring = nullptr;
    taken.error = EINVAL;
  }
  return taken;
}

std::unique_ptr<WriteRing> WriteRing::resume(UniqueFd memory) {
  std::unique_ptr<WriteRing> ring = map(std::move(memory));
  if (ring == nullptr) return nullptr;
  // RING-TAKEN acquire: what the earlier daemon has stored elsewhere.
  ring->taken_ = ring->header().taken.load(std::memory_order_acquire);
  // Programs may have the memory mapped, and nothing takes their writes after the replay.
  ring->seal();
  ring->until_ = ring->last();
  return ring;
}

const std::byte* WriteRing::bytes_at(std::uint64_t position) const {
  return static_cast<const std::byte*>(memory_.begin()) + sizeof(WriteRingHeader) + position % kWriteRingBytes;
}

void WriteRing::break_off() {
  seal();
  is_broken_ = true;
  is_over_ = true;
}

std::optional<WriteRing::Write> WriteRing::first() {
  const std::uint64_t last = std::min(this->last(), until_);
  while (!is_over_) {
    if (taken_ > last) return {};
    WriteRingRecord record{};
    constexpr std::uint64_t kUnit = sizeof record;
    if (taken_ % kUnit != 0 || last % kUnit != 0 || last - taken_ >= kWriteRingBytes) break;
    std::memcpy(&record, bytes_at(taken_), sizeof record);
    const std::uint64_t end = taken_ + layout::write_ring_bytes(record.length);
    if (record.length > kWriteRingBytes - kUnit || record.length < removed_ ||
        record.offset > INT64_MAX - kWriteRingBytes)
      break;
    if (end > last && taken_ != last) break;
    length_ = record.length;
    if (record.length == removed_) {
      taken_ = end;
      removed_ = 0;
      continue;
    }
    const std::uint64_t begin = (taken_ + kUnit + removed_) % kWriteRingBytes;
    const std::size_t bytes = record.length - removed_;
    const std::size_t first = std::min<std::uint64_t>(bytes, kWriteRingBytes - begin);
    return Write{.offset = record.offset + removed_,
                 .parts = {{{bytes_at(begin), first}, {bytes_at(0), bytes - first}}}};
  }
  if (!is_over_) break_off();
  return {};
}

void WriteRing::remove(std::size_t bytes) {
  removed_ += bytes;
  if (removed_ < length_) return;
  taken_ += layout::write_ring_bytes(length_);
  removed_ = 0;
}

void WriteRing::publish(std::uint64_t room) {
  header().taken.store(taken_, std::memory_order_release);  // RING-TAKEN release: the copies of these records
  limit_ = std::max(limit_, taken_ + std::min(room, kWriteRingBytes));
  header().limit.store(limit_, std::memory_order_relaxed);
}

std::uint64_t WriteRing::expected() const { return is_sealed() ? 0 : limit_ - std::min(limit_, taken_); }

std::uint64_t WriteRing::last() const {
  return header().last.load(std::memory_order_acquire) & ~kWriteRingSealed;  // RING-LAST acquire
}

void WriteRing::seal() {
  // RING-LAST acquire, RING-LAST release: the program's next compare-exchange fails.
  header().last.fetch_or(kWriteRingSealed, std::memory_order_acq_rel);
  pass(FaultPoint::ring_sealed);
}

bool WriteRing::is_sealed() const {
  return (header().last.load(std::memory_order_acquire) & kWriteRingSealed) != 0;  // RING-LAST acquire
}

bool WriteRing::sleep() {
  header().sleeps.store(1, std::memory_order_seq_cst);  // RING-SLEEP barrier: before the look at `last`
  // RING-SLEEP barrier: after the store.
  const std::uint64_t last = header().last.load(std::memory_order_seq_cst) & ~kWriteRingSealed;
  if (taken_ > last || is_over_) return true;
  header().sleeps.store(0, std::memory_order_relaxed);
  return false;
}

}  // namespace wherry::file::mount
