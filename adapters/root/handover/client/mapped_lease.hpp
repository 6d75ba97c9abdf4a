// SPDX-License-Identifier: Apache-2.0
// The server's memory as a worker sees it: the lease that it writes into, and the windows that it has mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>

#include <wherry/window.hpp>

#include "adapters/root/handover/places.hpp"

namespace wherry::root {

/// A lease that the server granted to this worker.
struct MappedLease {
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
  bool keeps = false;  ///< the worker may keep it between files, however long that takes
  std::shared_ptr<MappedWindow> mapped = {};
  Places files = {};  ///< files that were posted from this lease and are not done

  [[nodiscard]] std::byte* at(std::size_t place) const { return mapped->bytes().data() + place; }
  /// Returns the free bytes from `place` to the next file.
  [[nodiscard]] std::span<std::byte> free_from(std::size_t place) const {
    return {at(place), files.free_until(place, bytes) - place};
  }
  /// Removes the pages from this process's resident memory. An access maps them again, with their content.
  void unload(std::size_t place, std::size_t size) const;
};

/// Caches the most recently used mappings of the server's memory. A lease that is granted again causes no page faults.
class MappedWindows {
 public:
  /// Throws Error.
  std::shared_ptr<MappedWindow> map(Windows windows, std::uint64_t offset, std::size_t bytes);
  void clear() { windows_.clear(); }

 private:
  static constexpr std::size_t kMost = 8;
  struct Window {
    std::uint64_t offset = 0;
    std::shared_ptr<MappedWindow> mapped;
  };
  std::list<Window> windows_;  ///< least recently used first
};

}  // namespace wherry::root
