// SPDX-License-Identifier: Apache-2.0
// Tracks where this process has mapped windows of its peers. A peer learns when the last mapping of a window is gone:
// only then are the window's offsets free again. Thread-safe.
//
// May include: base, arch, layout, fabric.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "window/mapping_references.hpp"

namespace wherry::window {

class Mappings {
 public:
  /// Returns the mappings of this process. A forked child begins with none, because it inherits no mapping.
  static Mappings& instance();

  /// Calls `map`, which maps over `where` and returns 0 or an errno value. The caller has added `entry` to `marks`; on
  /// an error this removes it again.
  int map(std::span<std::byte> where, std::shared_ptr<MappingReferences> marks, const Entry& entry,
          const std::function<int()>& map);
  /// As munmap: returns 0, or -1 with errno.
  int unmap(void* start, std::size_t bytes);

 private:
  struct Mapping {
    std::uintptr_t end = 0;
    std::shared_ptr<MappingReferences> marks;
    Entry entry;
  };

  void forget(std::uintptr_t start, std::uintptr_t end);
  void keep_part(std::uintptr_t start, std::uintptr_t end, const Mapping& of);

  std::mutex mutex_;  // guards mappings_, and keeps it consistent with the kernel's mappings
  std::map<std::uintptr_t, Mapping> mappings_;
};

}  // namespace wherry::window
