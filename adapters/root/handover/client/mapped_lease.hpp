// SPDX-License-Identifier: Apache-2.0
// The server's memory as a worker has it: the lease that it writes into, and the windows that it has mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>

#include <wherry/window.hpp>

#include "adapters/root/handover/places.hpp"

namespace wherry::root {

/// A lease that this worker was granted.
struct MappedLease {
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
  bool keeps = false;  ///< may be kept between files, however far apart they are
  std::shared_ptr<MappedWindow> mapped = {};
  Places files = {};  ///< posted there and not done

  [[nodiscard]] std::byte* at(std::size_t place) const { return mapped->bytes().data() + place; }
  /// The free bytes from there to the next file.
  [[nodiscard]] std::span<std::byte> free_from(std::size_t place) const {
    return {at(place), files.free_until(place, bytes) - place};
  }
  /// Takes the pages out of this process's resident memory; touching them brings them back.
  void unload(std::size_t place, std::size_t size) const;
};

/// The mappings of the server's memory that were used last. A lease that is granted again meets no page fault.
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
  std::list<Window> windows_;  ///< the longest unused first
};

}  // namespace wherry::root
