// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/unique_fd.hpp"
#include "layout/write_ring.hpp"

namespace wherry {

/// The program's side of a ring of writes, without its checks.
class ProgramRing {
 public:
  ProgramRing() : memory_(::memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (::ftruncate(memory_.get(), static_cast<off_t>(layout::kWriteRingMemory)) != 0) return;
    ::fcntl(memory_.get(), F_ADD_SEALS, F_SEAL_SHRINK);
    void* const mapped =
        ::mmap(nullptr, layout::kWriteRingMemory, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
    header_ = static_cast<layout::WriteRingHeader*>(mapped);
    header_->version = layout::kWriteRingVersion;
    header_->magic = layout::kWriteRingMagic;
    std::memset(header_->random, 7, sizeof header_->random);
  }
  ProgramRing(const ProgramRing&) = delete;
  ProgramRing& operator=(const ProgramRing&) = delete;
  ~ProgramRing() { ::munmap(header_, layout::kWriteRingMemory); }

  [[nodiscard]] int descriptor() const { return memory_.get(); }
  [[nodiscard]] layout::WriteRingHeader& header() const { return *header_; }
  [[nodiscard]] layout::WriteRingOffer offer() const {
    layout::WriteRingOffer made{
        .version = layout::kWriteRingVersion, .descriptor = memory_.get(), .random = {}, .appends = 0, .reserved = 0};
    std::memset(made.random, 7, sizeof made.random);
    return made;
  }
  [[nodiscard]] layout::WriteRingRecord& record_at(std::uint64_t position) const {
    return *reinterpret_cast<layout::WriteRingRecord*>(byte_at(position));
  }
  [[nodiscard]] bool has_room(std::size_t length) const {
    const std::uint64_t last = header_->last.load() & ~layout::kWriteRingSealed;
    const std::uint64_t end = last + layout::write_ring_bytes(record_at(last).length) +
                              layout::write_ring_bytes(static_cast<std::uint32_t>(length));
    return end - std::min(header_->taken.load(), last) <= layout::kWriteRingBytes && end <= header_->limit.load();
  }
  /// Returns whether the record became valid. The caller makes sure that there is room.
  bool write(std::uint64_t offset, std::string_view data) const {
    std::uint64_t last = header_->last.load();
    if ((last & layout::kWriteRingSealed) != 0) return false;
    const std::uint64_t position = last + layout::write_ring_bytes(record_at(last).length);
    const auto length = static_cast<std::uint32_t>(data.size());
    record_at(position) = {.offset = offset, .next = 0, .length = length, .reserved = {}, .end = 0};
    for (std::size_t i = 0; i < data.size(); ++i) *byte_at(position + sizeof(layout::WriteRingRecord) + i) = data[i];
    return header_->last.compare_exchange_strong(last, position);
  }

 private:
  [[nodiscard]] char* byte_at(std::uint64_t position) const {
    return reinterpret_cast<char*>(header_ + 1) + position % layout::kWriteRingBytes;
  }

  UniqueFd memory_;
  layout::WriteRingHeader* header_ = nullptr;
};

}  // namespace wherry
