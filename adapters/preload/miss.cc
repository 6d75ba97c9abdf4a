// SPDX-License-Identifier: Apache-2.0
#include "miss.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "next.hpp"
#include "progress.hpp"
#include "store.hpp"

namespace wherry::preload {
namespace {

using file::Admission;
using file::kSpan;
using layout::kFileBlock;
using Way = Progress::Way;

/// Longest read that fills at first touch. Filling a new block costs its pages, which only shorter reads in order get
/// back within one pass.
constexpr std::size_t kFillsAtOnce = 2048;

/// How a miss is served.
struct Decision {
  Way way = Way::look;  // until the span ends
  Admission when = Admission::second_touch;
  bool kernels = false;  // nothing of it is filled
};

Decision decide(const Tracked& tracked, const Progress& before, std::uint64_t offset, std::uint64_t bytes) {
  if (before.eager()) return {.when = Admission::first_touch};
  const std::uint64_t block = offset / kFileBlock;
  const std::uint64_t last_block = (offset + bytes - 1) / kFileBlock;
  const std::uint64_t block_before = before.begins() ? block : (before.end - 1) / kFileBlock;
  const bool in_order = before.leads_to(offset);
  if (before.holds_at(offset) && before.way == Way::fills) return {Way::fills, Admission::wanted_again};
  if (bytes <= kFillsAtOnce && (block == block_before || block == block_before + 1)) {
    return {.when = Admission::first_touch};
  }
  if (in_order) {
    if (tracked.cache.was_passed(tracked.file, offset)) return {Way::fills, Admission::wanted_again};
    // Whole spans only: the span that the read ends in is looked at by the next read.
    for (std::uint64_t next = (offset / kSpan + 1) * kSpan; next + kSpan <= offset + bytes; next += kSpan) {
      (void)tracked.cache.was_passed(tracked.file, next);
    }
    return {.way = Way::kernels, .kernels = true};
  }
  if (bytes >= file::kLargeRead) {
    // The first block stands for all blocks of a large read.
    const bool wanted = tracked.cache.was_wanted(tracked.file, block);
    return {.when = Admission::wanted_again, .kernels = !wanted};
  }
  // A read of another part of the same block does not count as a second touch.
  return {.kernels = !before.begins() && block == block_before && last_block == block_before};
}

class Filling {
 public:
  Filling(const Tracked& tracked, std::uint64_t offset, Admission when)
      : tracked_(tracked), offset_(offset), when_(when) {}

  bool read(std::span<std::byte> to) {
    const std::size_t wanted = to.size();
    while (!to.empty()) {
      const auto part = to.first(std::min(to.size(), kFileBlock - offset_ % kFileBlock));
      if (read_block(part)) {
        if (!read_kernels()) return false;
      } else if (wanted < file::kLargeRead) {
        return false;
      } else {
        kernels_ = kernels_.empty() ? part : std::span(kernels_.data(), kernels_.size() + part.size());
      }
      offset_ += part.size();
      to = to.subspan(part.size());
    }
    return kernels_.size() < wanted && read_kernels();
  }

 private:
  /// A part of one block: from the cache, or into the cache and from there.
  bool read_block(std::span<std::byte> part) {
    file::Fill fill = tracked_.cache.fill(tracked_.file, offset_ / kFileBlock, when_);
    if (!fill) return tracked_.cache.read(tracked_.file, offset_, part);
    const std::uint64_t forks_before = forks();
    const auto memory = fill.memory();
    // Not the C library's call: a thread must not be cancelled while it holds the block.
    const long got = WHERRY_NEXT(syscall, SYS_pread64, tracked_.fd, memory.data(), memory.size(), fill.offset());
    if (forks() != forks_before) {
      fill.forget();
      return false;
    }
    if (got <= 0 || !still_this_file()) return false;
    const std::size_t begin = offset_ - fill.offset();
    const bool enough = static_cast<std::size_t>(got) >= begin + part.size();
    if (enough) std::memcpy(part.data(), memory.data() + begin, part.size());
    fill.publish(static_cast<std::size_t>(got));
    return enough;
  }

  /// Returns whether the descriptor still has the file: other processes will read this block, and the number may name
  /// another file by now.
  bool still_this_file() const {
    struct stat status{};
    return fstat(tracked_.fd, &status) == 0 && tracked_.entry.load().generation() == tracked_.state.generation() &&
           is_file_of(tracked_.entry, status);
  }

  /// Reads from the kernel what was left out before this place.
  bool read_kernels() {
    if (kernels_.empty()) return true;
    const auto begin = static_cast<off_t>(offset_ - kernels_.size());
    const ssize_t got = WHERRY_NEXT(pread64, tracked_.fd, kernels_.data(), kernels_.size(), begin);
    if (got != static_cast<ssize_t>(kernels_.size())) return false;
    kernels_ = {};
    return true;
  }

  const Tracked& tracked_;
  std::uint64_t offset_;
  Admission when_;
  std::span<std::byte> kernels_;  // left out, and ends at offset_
};

}  // namespace

bool is_file_of(const Entry& entry, const struct stat& status) noexcept {
  return entry.device.load(std::memory_order_relaxed) == status.st_dev &&
         entry.inode.load(std::memory_order_relaxed) == status.st_ino;
}

bool read_by_filling(const Tracked& tracked, std::uint64_t offset, std::span<std::byte> to) {
  const Progress before = Progress::of(tracked.entry);
  const Decision decision = decide(tracked, before, offset, to.size());
  before.after(offset, to.size(), decision.way).store(tracked.entry);
  if (decision.kernels) {
    tracked.cache.count_kernels(file::KernelReason::first_touch);
    return false;
  }
  if (Filling(tracked, offset, decision.when).read(to)) {
    tracked.cache.count_filled();
    return true;
  }
  tracked.cache.count_kernels(decision.when == Admission::second_touch ? file::KernelReason::first_touch
                                                                       : file::KernelReason::other);
  return false;
}

}  // namespace wherry::preload
