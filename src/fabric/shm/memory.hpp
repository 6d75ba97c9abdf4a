// SPDX-License-Identifier: Apache-2.0
// Shared memory of one side of a connection: a sealed memfd that contains the bell page and then the segment.
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

/// This side's memory. The peer can map it after it has received `descriptor()`.
class OwnMemory {
 public:
  OwnMemory() = default;
  /// Throws Error.
  /// @param segment_bytes  as in Offer; also `compact`
  /// @param caller         null: allocates zeroed memory. Else replaces the caller's pages, in place and with their
  ///                       content, by shared ones. The destructor makes them private again.
  OwnMemory(std::size_t segment_bytes, std::byte* caller, bool compact = false);
  OwnMemory(OwnMemory&& other) noexcept { *this = std::move(other); }
  OwnMemory& operator=(OwnMemory&& other) noexcept;
  ~OwnMemory();

  [[nodiscard]] layout::BellPage& page() const { return *reinterpret_cast<layout::BellPage*>(mapping_.start()); }
  [[nodiscard]] std::span<std::byte> segment() const { return segment_; }
  [[nodiscard]] int descriptor() const { return memfd_.get(); }
  /// Closes the descriptor. It is not needed once the peer has received it.
  void drop_descriptor() { memfd_.reset(); }

 private:
  void share_callers_pages(std::byte* caller);
  void give_back_callers_pages();

  UniqueFd memfd_;
  Mapping mapping_;
  std::span<std::byte> segment_;
  bool callers_ = false;
};

/// Maps the memory that a peer sent: the bell page, then `segment_bytes`. Accepts only a memfd of exactly that size
/// that is sealed against shrinking and growing, as the peer could otherwise shrink it under the mapping. Else returns
/// an empty mapping and sets `error`.
Mapping map_peers_memory(int memfd, std::size_t segment_bytes, int& error, bool compact = false);

/// Maps the memory that a peer shows, read-only. Accepts only a memfd as above.
Mapping map_shown_memory(int memfd, std::size_t bytes, int& error);

}  // namespace wherry::fabric::shm
