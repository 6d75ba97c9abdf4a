// SPDX-License-Identifier: Apache-2.0
#include "file/comp.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "file/cache_looks.hpp"

namespace wherry::file {
namespace {

using layout::kFileBlock;

// As the kernel reads ahead: more each time, up to what a second-level cache keeps for the reader that follows.
constexpr std::size_t kFirstWindow = std::size_t{64} << 10;
constexpr std::size_t kLargestWindow = std::size_t{256} << 10;

struct ::stat stat_of(const layout::FileStatus& status) {
  struct ::stat stat{};
  stat.st_dev = status.device;
  stat.st_ino = status.inode;
  stat.st_size = static_cast<off_t>(status.size);
  stat.st_mtim = {.tv_sec = status.modified.seconds, .tv_nsec = status.modified.nanoseconds};
  stat.st_ctim = {.tv_sec = status.changed.seconds, .tv_nsec = status.changed.nanoseconds};
  return stat;
}

/// Of large reads one block in so many is asked whether it was wanted before, and answers for those that follow it: to
/// ask for each would cost as much as the cache saves there.
constexpr std::uint64_t kBlocksAsked = 8;

}  // namespace

/// Blocks being filled, and bytes between them that are not, which one call of the source's reads: they follow each
/// other in the file.
class CompFile::Run {
 public:
  /// @param to  where bytes of the file from `offset` on are wanted
  Run(Source& source, std::uint64_t offset, std::span<std::byte> to) : source_(source), offset_(offset), to_(to) {}

  [[nodiscard]] bool empty() const { return parts_ == 0; }
  [[nodiscard]] bool full() const { return fills_ == kMostFills || parts_ == into_.size(); }
  [[nodiscard]] std::uint64_t end() const { return end_; }

  /// The next bytes of the file are a block's. False: there is no memory for it.
  bool add(Fill&& fill) {
    if (!source_.can_read_into(fill.memory())) return false;
    if (empty()) begin_ = fill.offset();
    end_ = fill.offset() + kFileBlock;
    add(fill.memory());
    fill_[fills_++] = std::move(fill);
    return true;
  }
  /// The next bytes of the file are only wanted.
  void add_wanted(std::uint64_t from, std::size_t bytes) {
    if (empty()) begin_ = from;
    end_ = from + bytes;
    add(to_.subspan(from - offset_, bytes));
  }

  /// Bytes wanted that are in place then, from the first byte on that this run was to bring; and an error after them.
  Result read(Read& counts) {
    Result got = source_.read(begin_, std::span(into_).first(parts_));
    counts.fetched += got.bytes;
    const std::uint64_t got_end = begin_ + got.bytes;
    for (Fill& fill : std::span(fill_).first(fills_)) {
      const std::uint64_t block = fill.offset();
      const std::uint64_t block_end = std::min(block + kFileBlock, got_end);
      const std::uint64_t from = std::max(block, offset_);
      const std::uint64_t until = std::min(block_end, offset_ + to_.size());
      if (from < until) std::memcpy(&to_[from - offset_], fill.memory().data() + (from - block), until - from);
      if (block < block_end) counts.filled += block_end - block;
      fill.publish(block < block_end ? block_end - block : 0);
    }
    const std::uint64_t wanted = std::max(begin_, offset_);
    const std::uint64_t wanted_end = std::min(end_, offset_ + to_.size());
    Result result = Result::moved(std::min(got_end, wanted_end) - std::min(wanted, std::min(got_end, wanted_end)));
    // No room behind the blocks, or an error before what is wanted: that may be had all the same. A host that is out of
    // reach is not waited for again.
    if (got.failed() && got_end < wanted_end && (got.error == EFAULT || got_end < wanted || !source_.is_remote())) {
      const iovec rest{&to_[wanted - offset_ + result.bytes], wanted_end - wanted - result.bytes};
      const Result more = source_.read(wanted + result.bytes, {&rest, 1});
      counts.fetched += more.bytes;
      result = {result.bytes + more.bytes, more.status, more.error};
    }
    parts_ = 0;
    fills_ = 0;
    return result;
  }

 private:
  /// The largest window, and the blocks of a small read before it.
  static constexpr std::size_t kMostFills = kLargestWindow / kFileBlock + 4;

  void add(std::span<std::byte> memory) {
    if (parts_ != 0) {
      iovec& last = into_[parts_ - 1];
      if (static_cast<std::byte*>(last.iov_base) + last.iov_len == memory.data()) {
        last.iov_len += memory.size();
        return;
      }
    }
    into_[parts_++] = {memory.data(), memory.size()};
  }

  Source& source_;
  std::uint64_t offset_;
  std::span<std::byte> to_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::array<Fill, kMostFills> fill_;
  std::size_t fills_ = 0;
  std::array<iovec, 2 * kMostFills + 1> into_;
  std::size_t parts_ = 0;
};

File CompFile::file() const { return unpacked(file_.load(std::memory_order_relaxed)); }

Key CompFile::key() const { return {device_.load(std::memory_order_relaxed), inode_.load(std::memory_order_relaxed)}; }

void CompFile::opened(const Look& look) {
  const std::uint64_t looked = coarse_clock();
  cacheable_ = source_.can_be_cached(look.status);
  compared(look, looked);
}

/// Compares the stamp, and opens the file's place if there is none any more.
/// @param looked  when the file was looked at, or before: a host's answer may have taken long
void CompFile::compared(const Look& look, std::uint64_t looked) {
  device_.store(look.status.device, std::memory_order_relaxed);
  inode_.store(look.status.inode, std::memory_order_relaxed);
  size_.store(look.status.size, std::memory_order_relaxed);
  Validity validity = Validity::gone;
  if (cacheable_ && cache_.attached()) {
    File here = file();
    if (!here.none()) validity = validate(here, look);
    if (validity == Validity::gone) {
      here = cache_.open(key());
      if (!here.none()) validity = validate(here, look);
      file_.store(packed(here), std::memory_order_relaxed);
    }
  }
  const bool usable = validity == Validity::usable && file_.load(std::memory_order_relaxed) != kNoFile;
  deadline_.store((looked + counts_for(validity)) << 1 | std::uint64_t{usable}, std::memory_order_relaxed);
}

/// As file::validate does with a descriptor.
Validity CompFile::validate(const File& here, const Look& look) {
  const Stamp unwritten(stat_of(look.status), look.clock, Writers::none);
  // Once there were no writers: a write since then has left another stamp.
  if (!unwritten.settled() || cache_.has_stamp(here, unwritten)) return cache_.validate(here, unwritten);
  Look again;
  if (source_.look(again, true) != 0) return Validity::unsettled;
  if (again.writers == Writers::perhaps && cache_.was_changed_here(here)) again.writers = Writers::ours;
  return cache_.validate(here, Stamp(stat_of(again.status), again.clock, again.writers));
}

int CompFile::compare() {
  const std::uint64_t looked = coarse_clock();
  Look look;
  if (const int error = source_.look(look, false); error != 0) return error;
  if (Key(look.status.device, look.status.inode) != key()) file_.store(kNoFile, std::memory_order_relaxed);
  compared(look, looked);
  return 0;
}

bool CompFile::usable(int& error) {
  error = 0;
  if (!cacheable_) return false;
  const std::uint64_t deadline = deadline_.load(std::memory_order_relaxed);
  if (coarse_clock() < deadline >> 1) [[likely]]
    return (deadline & 1) != 0;
  error = compare();
  return error == 0 && (deadline_.load(std::memory_order_relaxed) & 1) != 0;
}

std::size_t CompFile::ahead(bool in_order) {
  const std::size_t before = window_.load(std::memory_order_relaxed);
  const std::size_t now = in_order ? std::clamp(2 * before, kFirstWindow, kLargestWindow) : 0;
  window_.store(now, std::memory_order_relaxed);
  return now;
}

bool CompFile::wanted_before(std::uint64_t offset, std::size_t bytes) {
  const File here = file();
  if (offset >= size()) return false;
  const std::uint64_t last = (std::min(offset + bytes, size()) - 1) / kFileBlock;
  for (std::uint64_t block = offset / kFileBlock; block <= last; block += kBlocksAsked - block % kBlocksAsked) {
    if (cache_.contains(here, block) || cache_.fill(here, block, Admission::second_touch)) return true;
  }
  return false;
}

CompFile::Read CompFile::read(std::uint64_t offset, std::span<std::byte> to, std::size_t ahead) {
  Read read{.result = Result::moved(0)};
  const std::uint64_t end = offset + to.size();
  const File here = file();
  Run run(source_, offset, to);
  std::uint64_t at = offset;  // as far as it is planned
  // False: the end of the file, or an error.
  const auto bring = [&] {
    if (run.empty()) return true;
    const std::uint64_t wanted = std::min(run.end(), end) - (offset + read.result.bytes);
    const Result got = run.read(read);
    read.result = {read.result.bytes + got.bytes, got.status, got.error};
    return got.ok() && got.bytes == wanted;
  };
  const bool one_block = offset / kFileBlock == (end - 1) / kFileBlock;
  // Not beyond the end of the file, as far as that is known: blocks of others would make room for nothing.
  const std::uint64_t known = size();
  while (at < end && at < known) {
    const std::size_t part = std::min<std::uint64_t>(end - at, kFileBlock - at % kFileBlock);
    Fill fill = cache_.fill(here, at / kFileBlock, Admission::first_touch);
    const bool filled = fill && run.add(std::move(fill));
    const bool cached = !filled && !one_block && cache_.read(here, at, to.subspan(at - offset, part));
    if (cached && !bring()) return read;
    if (cached) read.result.bytes += part;
    if (!filled && !cached) run.add_wanted(at, part);
    at += part;
    if (run.full() && !bring()) return read;
  }
  if (at < end) run.add_wanted(at, end - at);
  const std::uint64_t limit = std::min(end + ahead, known);
  for (std::uint64_t next = run.end(); !run.empty() && next % kFileBlock == 0 && next < limit; next = run.end()) {
    Fill fill = run.full() ? Fill() : cache_.fill(here, next / kFileBlock, Admission::first_touch);
    if (!fill || !run.add(std::move(fill))) break;
  }
  end_.store(run.empty() ? end : std::max(run.end(), end), std::memory_order_relaxed);
  bring();
  return read;
}

}  // namespace wherry::file
