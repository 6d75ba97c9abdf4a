// SPDX-License-Identifier: Apache-2.0
// For tests: a segment of their own, files on a disk that is really read, and a look at the whole segment.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "base/unique_fd.hpp"
#include "file/cache.hpp"
#include "file/segment_file.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry::file {

inline constexpr std::size_t kBlockBytes = layout::kFileBlock;

/// Whether the kernel tells of descriptors that are open to write, and the file system stamps what is stored through a
/// mapping.
inline bool tells_of_mapped_stores(int fd) {
  struct ::statfs where{};
  return writers_of(fd) == Writers::none && ::fstatfs(fd, &where) == 0 && where.f_type != TMPFS_MAGIC;
}

/// A segment that is gone with this object, mapped once more for tests that look at it or spoil it.
class TestSegment {
 public:
  explicit TestSegment(std::uint64_t bytes = kLeastCache) : path_(new_path()), file_(make_segment(path_, bytes)) {
    if (!file_.valid()) throw std::runtime_error(path_ + " is there already");
    struct ::stat status{};
    if (::fstat(file_.get(), &status) != 0) throw std::system_error(errno, std::system_category(), path_);
    size_ = static_cast<std::size_t>(status.st_size);
    void* const base = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (base == MAP_FAILED) throw std::system_error(errno, std::system_category(), path_);
    base_ = static_cast<std::byte*>(base);
    segment_ = Segment(base_, reinterpret_cast<layout::FileCacheHeader*>(base_)->sets);
  }
  TestSegment(const TestSegment&) = delete;
  TestSegment& operator=(const TestSegment&) = delete;
  ~TestSegment() {
    ::munmap(base_, size_);
    ::unlink(path_.c_str());
  }

  [[nodiscard]] const char* path() const { return path_.c_str(); }
  [[nodiscard]] int descriptor() const { return file_.get(); }
  [[nodiscard]] const Segment& operator*() const { return segment_; }
  [[nodiscard]] const Segment* operator->() const { return &segment_; }
  /// All that is in front of the blocks.
  [[nodiscard]] std::span<std::byte> tables() const { return {base_, layout::file_tables_bytes(segment_.sets())}; }

 private:
  static std::string new_path() {
    static std::atomic<int> number{0};
    return "/dev/shm/wherry-files-test" + std::to_string(::getpid()) + "-" + std::to_string(++number);
  }

  std::string path_;
  UniqueFd file_;
  std::size_t size_ = 0;
  std::byte* base_ = nullptr;
  Segment segment_;
};

/// An attached cache. Ends as a process's would that leaves in order.
class TestCache {
 public:
  explicit TestCache(const TestSegment& segment) {
    if (const Refusal refusal = cache_.attach(segment.path())) throw std::runtime_error(refusal.reason);
  }
  TestCache(const TestCache&) = delete;
  TestCache& operator=(const TestCache&) = delete;
  ~TestCache() {
    cache_.detach();
    // The library leaves the mapping: other threads may be reading. Here there are none.
  }
  Cache* operator->() { return &cache_; }
  Cache& operator*() { return cache_; }

 private:
  Cache cache_;
};

/// A file whose byte at each place is known.
class TestFile {
 public:
  explicit TestFile(std::size_t bytes, unsigned seed = 1) : content_(bytes) {
    for (std::size_t i = 0; i < bytes; ++i) content_[i] = static_cast<std::byte>(mixed(i / 8 + seed) >> (i % 8 * 8));
    path_ = directory_.path() / "file";
    file_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file_.valid()) throw std::system_error(errno, std::system_category(), path_);
    write(0, content_);
  }

  [[nodiscard]] int descriptor() const { return file_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::span<const std::byte> content() const { return content_; }
  /// It is not open to write any more.
  void close() { file_.reset(); }
  [[nodiscard]] struct ::stat status() const {
    struct ::stat status{};
    if (::stat(path_.c_str(), &status) != 0) throw std::system_error(errno, std::system_category(), path_);
    return status;
  }
  [[nodiscard]] Key key() const { return Key(status()); }
  /// Its stamp, as if it had been changed an hour ago.
  [[nodiscard]] Stamp stamp() const { return {status(), Stamp::now() + 3'600'000'000'000, Writers::none}; }

  /// As a program does that the cache does not see.
  void write(std::uint64_t offset, std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), content_.begin() + static_cast<std::ptrdiff_t>(offset));
    if (::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)) !=
        static_cast<ssize_t>(bytes.size())) {
      throw std::system_error(errno, std::system_category(), path_);
    }
  }
  void write(std::uint64_t offset, std::size_t bytes, int value) {
    write(offset, std::vector<std::byte>(bytes, static_cast<std::byte>(value)));
  }

 private:
  test::TemporaryDirectory directory_;
  std::string path_;
  UniqueFd file_;
  std::vector<std::byte> content_;
};

/// Opens and validates. Throws unless that is usable.
inline File open_usable(Cache& cache, const TestFile& file) {
  const File opened = cache.open(file.key());
  if (cache.validate(opened, file.stamp()) != Validity::usable) throw std::runtime_error("not usable");
  return opened;
}

/// Fills one block from the file. Whether it is there now.
inline bool fill_block(Cache& cache, const File& opened, int fd, std::uint64_t block,
                       Admission when = Admission::first_touch) {
  Fill fill = cache.fill(opened, block, when);
  if (!fill) return false;
  const ssize_t bytes = ::pread(fd, fill.memory().data(), fill.memory().size(), static_cast<off_t>(fill.offset()));
  return fill.publish(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
}

/// What of the numbered invariants (cache.cc) does not hold while the segment is not in use; empty if all do.
inline std::string broken_invariant(const Segment& segment) {
  for (std::uint64_t set = 0; set < segment.sets(); ++set) {
    for (std::size_t way = 0; way < layout::kFileWays; ++way) {
      const layout::FileSet& here = segment.set(set);
      const std::string where = "set " + std::to_string(set) + " way " + std::to_string(way);
      const std::uint64_t state = here.state[way];
      if (kind_of(state) == FileBlockKind::filling || kind_of(state) == FileBlockKind::cancelled) {
        return "1, 9: a fill of nobody's in " + where;
      }
      if (kind_of(state) != FileBlockKind::valid) continue;
      const auto slot = static_cast<std::uint32_t>(here.file[way] & 0xffff);
      if (slot >= layout::kFileSlots || bytes_of(state) == 0) return "2: the tag of " + where;
      if ((segment.set_of(slot, here.number[way]) & (segment.sets() - 1)) != set) return "2: the place of " + where;
      if (here.file[way] >> layout::kFileLifeEpochShift > epoch_of(segment.file(slot).life)) {
        return "6: a block of an epoch to come in " + where;
      }
    }
  }
  for (std::size_t i = 0; i < layout::kFileMostChanges; ++i) {
    const layout::FileChange& change = segment.change(i);
    if (change.owner != 0 || change.turn % 2 != 0) return "9: change " + std::to_string(i) + " is nobody's";
  }
  for (std::uint32_t i = 0; i < layout::kFileSlots; ++i) {
    const layout::FileSlot& slot = segment.file(i);
    if (file_kind_of(slot.life) == FileKind::busy) return "7, 9: place " + std::to_string(i) + " is busy";
    if (file_kind_of(slot.life) == FileKind::ready && slot.born > epoch_of(slot.life)) {
      return "6: place " + std::to_string(i) + " is of an epoch to come";
    }
  }
  return "";
}

}  // namespace wherry::file
