// SPDX-License-Identifier: Apache-2.0
// Where this process has mapped windows of its peers', so that a peer learns when the last mapping of one is gone: only
// then are the window's offsets free again. May include: base, arch, layout, fabric.
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
  /// This process's: a forked child begins with none, as it inherits no mapping.
  static Mappings& instance();

  /// Maps by `map`, which returns 0 or an errno value, in place of what is there. The entry was added to `marks` for
  /// it; if it does not come about, that is taken back.
  int map(std::span<std::byte> where, std::shared_ptr<MappingReferences> marks, const Entry& entry,
          const std::function<int()>& map);
  /// munmap: 0, or -1 and errno.
  int unmap(void* start, std::size_t bytes);

 private:
  struct Mapping {
    std::uintptr_t end = 0;
    std::shared_ptr<MappingReferences> marks;
    Entry entry;
  };

  void forget(std::uintptr_t start, std::uintptr_t end);
  void keep_part(std::uintptr_t start, std::uintptr_t end, const Mapping& of);

  std::mutex mutex_;  // guards what follows, and that it is so
  std::map<std::uintptr_t, Mapping> mappings_;
};

}  // namespace wherry::window
