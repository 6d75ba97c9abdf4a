// SPDX-License-Identifier: Apache-2.0
//
// Reading in place. The rule is cache.cc's 3, with the second look left to the reader; and that the file's epoch is the
// same, by which changes drop many blocks at once.
#include <algorithm>

#include "file/cache.hpp"

namespace wherry::file {

bool Cache::contains(const File& file, std::uint64_t block) const noexcept {
  const std::uint64_t name = attached() ? name_of(file) : 0;
  return name != 0 && has(file, name, block, block);
}

Glimpse Cache::glimpse(const File& file, std::uint64_t offset, std::size_t length) noexcept {
  if (!attached() || file.slot >= layout::kFileSlots) return {};
  if (!is_current(file) && !make_current(file)) return {};
  layout::FileSlot& slot = segment_.file(file.slot);
  const std::uint64_t life = slot.life.load(std::memory_order_acquire);  // FILE-LIFE: born
  if (file_kind_of(life) != FileKind::ready || slot.born.load(std::memory_order_relaxed) != file.born) return {};
  const std::uint64_t name = file_name_of(life, file.slot);
  const std::uint64_t number = offset / layout::kFileBlock;
  const std::size_t within = offset % layout::kFileBlock;
  const std::uint64_t set_index = segment_.set_of(file.slot, number);
  layout::FileSet& set = segment_.set(set_index);
  const auto is_tagged = [&](std::size_t way) {
    return set.number[way].load(std::memory_order_relaxed) == number &&
           set.file[way].load(std::memory_order_relaxed) == name;
  };
  for (std::size_t way = 0; way < layout::kFileWays; ++way) {
    if (!is_tagged(way)) continue;
    // FILE-BLOCK acquire: the tag, and the bytes that were filled.
    const std::uint64_t state = set.state[way].load(std::memory_order_acquire);
    if (kind_of(state) != FileBlockKind::valid || within >= bytes_of(state) || !is_tagged(way)) continue;
    if (set.touched[way].load(std::memory_order_relaxed) == 0) set.touched[way].store(1, std::memory_order_relaxed);
    const std::size_t bytes = std::min(length, bytes_of(state) - within);
    layout::FileCounts& counts = counts_here();
    count(counts.hits);
    count(counts.hit_bytes, bytes);
    return {.bytes = {segment_.block(set_index, way) + within, bytes},
            .block = &set.state[way],
            .file = &slot.life,
            .block_state = state,
            .file_state = life};
  }
  return {};
}

}  // namespace wherry::file
