// SPDX-License-Identifier: Apache-2.0
// Shared memory of one side of a connection: a sealed memfd that holds the bells and then the segment.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "base/unique_fd.hpp"
#include "layout/bell_page.hpp"

namespace wherry::fabric::shm {

/// Owns a range of mapped memory.
class Mapping {
 public:
  Mapping() = default;
  Mapping(std::byte* start, std::size_t bytes) : start_(start), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  [[nodiscard]] std::byte* start() const { return start_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }

 private:
  std::byte* start_ = nullptr;
  std::size_t bytes_ = 0;
};

/// This side's memory. The peer reaches it once it was sent `descriptor()`.
class OwnMemory {
 public:
  OwnMemory() = default;
  /// `caller` null: fresh zeroed memory. Otherwise the caller's pages are replaced, in place and with their content, by
  /// shared ones, and made private again when this object dies. Throws Error.
  /// @param segment_bytes  as in Offer, with `compact`
  OwnMemory(std::size_t segment_bytes, std::byte* caller, bool compact = false);
  OwnMemory(OwnMemory&& other) noexcept { *this = std::move(other); }
  OwnMemory& operator=(OwnMemory&& other) noexcept;
  ~OwnMemory();

  [[nodiscard]] layout::BellPage& page() const { return *reinterpret_cast<layout::BellPage*>(mapping_.start()); }
  [[nodiscard]] std::span<std::byte> segment() const { return segment_; }
  [[nodiscard]] int descriptor() const { return memfd_.get(); }
  /// The descriptor is not needed once the peer has it: one fewer per connection.
  void drop_descriptor() { memfd_.reset(); }

 private:
  void share_callers_pages(std::byte* caller);
  void give_back_callers_pages();

  UniqueFd memfd_;
  Mapping mapping_;
  std::span<std::byte> segment_;
  bool callers_ = false;
};

/// Maps the memory a peer sent: the bells, then `segment_bytes`. Refuses (errno, empty mapping) what could be pulled
/// from under us: anything but a memfd of exactly that size, sealed against shrinking and growing.
Mapping map_peers_memory(int memfd, std::size_t segment_bytes, int& error, bool compact = false);

/// Maps the memory a peer shows, for reading only. Refuses the same.
Mapping map_shown_memory(int memfd, std::size_t bytes, int& error);

}  // namespace wherry::fabric::shm
