// SPDX-License-Identifier: Apache-2.0
// A file by way of the card's cache: the path `comp`.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include <wherry/result.hpp>

#include "file/cache.hpp"
#include "file/source.hpp"

namespace wherry::file {

/// From any thread. The cache and the source must outlive it.
class CompFile {
 public:
  CompFile(Cache& cache, Source& source) : cache_(cache), source_(source) {}

  /// The file was opened, and looked like this. Until it is called nothing is cached, and changes are not noted.
  void opened(const Look& look);

  /// Whether the cache may be asked now: the file is looked at if the last look is 100 ms ago. `error`: why it could
  /// not be looked at, else 0.
  bool usable(int& error);
  /// All of `to` from the cache, or nothing.
  bool hit(std::uint64_t offset, std::span<std::byte> to) { return cache_.read(file(), offset, to); }

  struct Read {
    Result result;
    std::size_t fetched = 0;  ///< bytes that the source gave
    std::size_t filled = 0;   ///< bytes of them that were read into blocks
  };
  /// What the cache has from there, the rest from the source. Blocks that it does not have are filled, and `ahead`
  /// bytes behind the last one of them.
  Read read(std::uint64_t offset, std::span<std::byte> to, std::size_t ahead);
  /// Whether something of it is in the cache, or was refused here before; notes that it was wanted.
  bool wanted_before(std::uint64_t offset, std::size_t bytes);

  /// Whether a read that misses there goes on where the last one, or what was filled with it, ended. That lies within
  /// the read where records and blocks end at unlike places.
  [[nodiscard]] bool in_order(std::uint64_t offset, std::size_t bytes) const {
    const std::uint64_t end = end_.load(std::memory_order_relaxed);
    return offset <= end && end - offset < bytes;
  }
  /// How far ahead to fill for a read in order, more each time; 0 for one that is not.
  std::size_t ahead(bool in_order);
  /// A read that did not ask the cache ended there.
  void passed(std::uint64_t end) { end_.store(end, std::memory_order_relaxed); }

  [[nodiscard]] Glimpse glimpse(std::uint64_t offset, std::size_t length) {
    return cache_.glimpse(file(), offset, length);
  }

  [[nodiscard]] Cache& cache() { return cache_; }
  /// What changes of the file are noted under.
  [[nodiscard]] Key key() const;
  [[nodiscard]] std::uint64_t size() const { return size_.load(std::memory_order_relaxed); }

 private:
  class Run;

  void compared(const Look& look, std::uint64_t looked);
  Validity validate(const File& here, const Look& look);
  int compare();
  [[nodiscard]] File file() const;

  Cache& cache_;
  Source& source_;
  bool cacheable_ = false;
  std::atomic<std::uint64_t> file_{~std::uint64_t{0}};  // slot and incarnation in one word, so that it is read whole
  std::atomic<std::uint64_t> deadline_{0};  // of the next look, and in bit 0 whether it may be used until then
  std::atomic<std::uint64_t> device_{0};
  std::atomic<std::uint64_t> inode_{0};
  std::atomic<std::uint64_t> size_{0};  // when it was last looked at: a hint
  std::atomic<std::uint64_t> end_{0};   // of the last read that missed
  std::atomic<std::size_t> window_{0};  // what was filled ahead with it
};

}  // namespace wherry::file
