// SPDX-License-Identifier: Apache-2.0
// Ways to change a file, each with what the file has afterwards.
#pragma once

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/files/beside.hpp"
#include "tests/files/changed_file.hpp"
#include "tests/files/queued_writes.hpp"

class Changes : private ChangedFile {
 public:
  /// `rings`: io_uring may be used, after which the preload steps aside.
  Changes(Beside& beside, std::vector<std::string> names, std::uint64_t seed, bool rings)
      : ChangedFile(beside, std::move(names), seed), rings_(rings) {}

  /// Changes the file in one way, or not at all where this file system or process cannot.
  void one() {
    Way& way = ways_[below(ways_.size())];
    const std::string& name = names_[below(names_.size())];
    const std::size_t size = truth_.size;
    fd_ = open(name.c_str(), O_RDWR | O_CLOEXEC);
    want(fd_ >= 0, name.c_str());
    const bool made = (this->*way.make)(name.c_str());
    close(fd_);
    way.made += made ? 1 : 0;
    if (truth_.size < size) beside_.shortened.store(clock_now());
    last_ = way.name;
  }

  [[nodiscard]] const char* last() const { return last_; }

  void print() const {
    for (const Way& way : ways_) std::printf("%lu by %s\n", way.made, way.name);
  }

 private:
  struct Way {
    const char* name;
    bool (Changes::*make)(const char* name);
    unsigned long made = 0;
  };
  bool by_pwrite(const char* /*name*/) {
    const Range to = some();
    want(whole(pwrite(fd_, fill(to.length), to.length, at(to.offset)), to.length), "pwrite");
    became(to.offset, bytes_.data(), to.length);
    return true;
  }
  bool by_write(const char* /*name*/) {
    const Range to = some();
    want(lseek(fd_, at(to.offset), SEEK_SET) == at(to.offset), "lseek");
    want(whole(write(fd_, fill(to.length), to.length), to.length), "write");
    became(to.offset, bytes_.data(), to.length);
    return true;
  }
  bool by_pwritev(const char* /*name*/) {
    const Range to = some();
    fill(to.length);
    const std::size_t first = below(to.length + 1);
    const std::array<iovec, 2> parts{iovec{bytes_.data(), first}, iovec{bytes_.data() + first, to.length - first}};
    if (below(2) == 0) {
      want(whole(pwritev2(fd_, parts.data(), 2, at(to.offset), RWF_DSYNC), to.length), "pwritev2");
    } else {
      want(lseek(fd_, at(to.offset), SEEK_SET) == at(to.offset), "lseek");
      want(whole(writev(fd_, parts.data(), 2), to.length), "writev");
    }
    became(to.offset, bytes_.data(), to.length);
    return true;
  }
  bool by_append(const char* name) {
    const std::size_t length = std::min({some_length(), std::size_t{5000}, kMost - truth_.size});
    const int end = open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
    want(whole(write(end, fill(length), length), length), "append");
    close(end);
    became(truth_.size, bytes_.data(), length);
    return true;
  }
  bool by_stdio(const char* name) {
    FILE* const file = std::fopen(name, "r+");
    want(file != nullptr, "fopen");
    const Range to = some();
    want(std::fseek(file, static_cast<long>(to.offset), SEEK_SET) == 0, "fseek");
    want(std::fwrite(fill(to.length), 1, to.length, file) == to.length && std::fclose(file) == 0, "fwrite");
    became(to.offset, bytes_.data(), to.length);
    return true;
  }
  /// A shared mapping of the whole file.
  template <typename Store>
  bool mapped(Store store) {
    const Range to = some_inside();
    if (to.length == 0) return false;
    void* const mapping = mmap(nullptr, truth_.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    want(mapping != MAP_FAILED, "mmap");
    fill(to.length);
    store(static_cast<unsigned char*>(mapping), to);
    want(munmap(mapping, truth_.size) == 0, "munmap");
    return true;
  }
  bool by_store(const char* /*name*/) {
    return mapped([this](unsigned char* file, Range to) {
      std::memcpy(file + to.offset, bytes_.data(), to.length);
      if (below(4) == 0) want(msync(file, truth_.size, MS_SYNC) == 0, "msync");
      became(to.offset, bytes_.data(), to.length);
    });
  }
  /// The kernel stores into the mapping.
  bool by_read_into_mapping(const char* /*name*/) {
    return mapped([this](unsigned char* file, Range to) {
      to.length = std::min(to.length, donated_.size());
      want(whole(pread(donor_, file + to.offset, to.length, 0), to.length), "pread");
      became(to.offset, donated_.data(), to.length);
    });
  }
  bool by_remove(const char* /*name*/) {
    const Range hole = some_pages();
    bool done = false;
    if (hole.length == 0) return false;
    mapped([&](unsigned char* file, Range) { done = madvise(file + hole.offset, hole.length, MADV_REMOVE) == 0; });
    if (!done) return cannot("madvise");
    zeroed(hole);
    return true;
  }
  std::size_t some_size() { return std::min(truth_.size / 2 + below(truth_.size + 5000), kMost); }
  bool by_ftruncate(const char* /*name*/) {
    const std::size_t size = some_size();
    want(ftruncate(fd_, at(size)) == 0, "ftruncate");
    resized(size);
    return true;
  }
  bool by_truncate(const char* name) {
    const std::size_t size = some_size();
    want(truncate(name, at(size)) == 0, "truncate");
    resized(size);
    return true;
  }
  /// Empty it, and write some of it again.
  bool by_open(const char* name) {
    const int empty = open(name, O_WRONLY | O_TRUNC | O_CLOEXEC);
    want(empty >= 0, "open");
    resized(0);
    const std::size_t length = below(kMost / 2);
    want(whole(pwrite(empty, fill(length), length, 0), length), "pwrite");
    became(0, bytes_.data(), length);
    close(empty);
    return true;
  }
  bool by_fallocate(int mode, Range range) {
    return range.length != 0 && (fallocate(fd_, mode, at(range.offset), at(range.length)) == 0 || cannot("fallocate"));
  }
  bool by_punch(const char* /*name*/) {
    const Range hole = below(2) == 0 ? some_inside() : some_pages();
    if (!by_fallocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, hole)) return false;
    zeroed(hole);
    return true;
  }
  bool by_zero_range(const char* /*name*/) {
    const Range range = some();
    if (!by_fallocate(FALLOC_FL_ZERO_RANGE, range)) return false;
    resized(std::max(truth_.size, range.offset + range.length));
    zeroed(range);
    return true;
  }
  bool by_allocate(const char* /*name*/) {
    const Range range = some();
    if (!by_fallocate(0, range)) return false;
    resized(std::max(truth_.size, range.offset + range.length));
    return true;
  }
  bool by_collapse(const char* /*name*/) {
    const Range range = some_pages();
    if (range.offset + range.length >= truth_.size || !by_fallocate(FALLOC_FL_COLLAPSE_RANGE, range)) return false;
    const auto begin = truth_.bytes.begin() + at(range.offset);
    std::copy(begin + at(range.length), truth_.bytes.begin() + at(truth_.size), begin);
    truth_.size -= range.length;
    return true;
  }
  bool by_insert(const char* /*name*/) {
    const Range range = some_pages();
    if (range.length + truth_.size > kMost || !by_fallocate(FALLOC_FL_INSERT_RANGE, range)) return false;
    const auto begin = truth_.bytes.begin() + at(range.offset);
    const auto end = truth_.bytes.begin() + at(truth_.size);
    std::copy_backward(begin, end, end + at(range.length));
    truth_.size += range.length;
    zeroed(range);
    return true;
  }
  /// What of the donor: as much as fits.
  Range donation(Range to) { return {.offset = 0, .length = std::min(to.length, donated_.size())}; }
  bool by_copy_file_range(const char* /*name*/) {
    const Range to = some();
    off64_t from = 0;
    off64_t target = at(to.offset);
    const ssize_t copied = copy_file_range(donor_, &from, fd_, &target, donation(to).length, 0);
    if (copied < 0) return cannot("copy_file_range");
    became(to.offset, donated_.data(), static_cast<std::size_t>(copied));
    return true;
  }
  bool by_sendfile(const char* /*name*/) {
    const Range to = some();
    off_t from = 0;
    want(lseek(fd_, at(to.offset), SEEK_SET) == at(to.offset), "lseek");
    const ssize_t copied = sendfile(fd_, donor_, &from, donation(to).length);
    want(copied >= 0, "sendfile");
    became(to.offset, donated_.data(), static_cast<std::size_t>(copied));
    return true;
  }
  bool by_splice(const char* /*name*/) {
    const Range to = some();
    std::array<int, 2> ends{};
    want(pipe2(ends.data(), O_CLOEXEC) == 0, "pipe2");
    off64_t from = 0;
    off64_t target = at(to.offset);
    const ssize_t taken =
        splice(donor_, &from, ends[1], nullptr, std::min(donation(to).length, std::size_t{60'000}), 0);
    const ssize_t copied =
        taken <= 0 ? taken : splice(ends[0], nullptr, fd_, &target, static_cast<std::size_t>(taken), 0);
    want(copied >= 0, "splice");
    for (const int end : ends) close(end);
    became(to.offset, donated_.data(), static_cast<std::size_t>(copied));
    return true;
  }
  bool by_clone(const char* /*name*/) {
    const Range to = some_pages();
    const file_clone_range range{.src_fd = donor_, .src_offset = 0, .src_length = to.length, .dest_offset = to.offset};
    if (to.length == 0 || ioctl(fd_, FICLONERANGE, &range) != 0) return to.length != 0 && cannot("FICLONERANGE");
    became(to.offset, donated_.data(), to.length);
    return true;
  }
  bool by_direct_write(const char* name) {
    const Range to = some_pages();
    const int direct = open(name, O_WRONLY | O_DIRECT | O_CLOEXEC);
    if (direct < 0) return cannot("open of O_DIRECT");
    const std::unique_ptr<void, decltype(&std::free)> aligned(std::aligned_alloc(kPageBytes, 8 * kPageBytes),
                                                              std::free);
    std::memcpy(aligned.get(), fill(to.length), to.length);
    want(whole(pwrite(direct, aligned.get(), to.length, at(to.offset)), to.length), "pwrite of O_DIRECT");
    close(direct);
    became(to.offset, bytes_.data(), to.length);
    return true;
  }
  bool by_io_submit(const char* /*name*/) {
    const Range to = some();
    want(whole(write_by_aio(fd_, fill(to.length), to.length, to.offset), to.length), "io_submit");
    became(to.offset, bytes_.data(), to.length);
    return true;
  }
  bool by_ring(const char* /*name*/) {
    const Range to = some();
    if (!rings_ || !whole(write_by_ring(fd_, fill(to.length), to.length, to.offset), to.length)) return false;
    became(to.offset, bytes_.data(), to.length);
    return true;
  }
  bool by_ring_truncate(const char* /*name*/) {
    const std::size_t size = some_size();
    if (!rings_ || truncate_by_ring(fd_, size) != 0) return false;
    resized(size);
    return true;
  }
  /// By a new hard link.
  bool by_link(const char* name) {
    const std::string other = std::string(name) + ".link";
    if (link(name, other.c_str()) != 0) return cannot("link");
    const bool done = by_truncate(other.c_str());
    want(unlink(other.c_str()) == 0, "unlink");
    return done;
  }
  /// By a process in a mount namespace of its own, which changes this process's memory by what the other one left.
  bool by_other_namespace(const char* name) {
    const Range to = some();
    fill(to.length);
    const pid_t child = fork();
    if (child == 0) {
      if (unshare(CLONE_NEWNS) != 0) std::_Exit(3);
      const int fd = open(name, O_WRONLY | O_CLOEXEC);
      std::_Exit(whole(pwrite(fd, bytes_.data(), to.length, at(to.offset)), to.length) ? 0 : 1);
    }
    int status = 0;
    want(waitpid(child, &status, 0) == child && WIFEXITED(status), "a child");
    if (WEXITSTATUS(status) == 3) return false;
    want(status == 0, "a write in another namespace");
    became(to.offset, bytes_.data(), to.length);
    return true;
  }
  /// Only with one name: others would have the older file.
  bool by_rename(const char* name) {
    if (names_.size() > 1 || below(6) != 0) return false;
    const std::string other = std::string(name) + ".new";
    const int fresh = open(other.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const std::size_t length = kMost / 4 + below(kMost / 2);
    want(whole(write(fresh, fill(length), length), length), "write");
    close(fresh);
    want(rename(other.c_str(), name) == 0, "rename");
    truth_.size = 0;
    became(0, bytes_.data(), length);
    beside_.replaced.fetch_add(1);
    return true;
  }
  bool by_dropping(const char* /*name*/) {
    want(fsync(fd_) == 0 && posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED) == 0, "fsync");
    return true;
  }

  bool rings_;
  const char* last_ = "nothing";
  std::vector<Way> ways_{
      {"pwrite", &Changes::by_pwrite},
      {"write", &Changes::by_write},
      {"pwritev", &Changes::by_pwritev},
      {"append", &Changes::by_append},
      {"stdio", &Changes::by_stdio},
      {"store", &Changes::by_store},
      {"read into a mapping", &Changes::by_read_into_mapping},
      {"MADV_REMOVE", &Changes::by_remove},
      {"ftruncate", &Changes::by_ftruncate},
      {"truncate", &Changes::by_truncate},
      {"O_TRUNC", &Changes::by_open},
      {"a punched hole", &Changes::by_punch},
      {"a zeroed range", &Changes::by_zero_range},
      {"fallocate", &Changes::by_allocate},
      {"a collapsed range", &Changes::by_collapse},
      {"an inserted range", &Changes::by_insert},
      {"copy_file_range", &Changes::by_copy_file_range},
      {"sendfile", &Changes::by_sendfile},
      {"splice", &Changes::by_splice},
      {"FICLONERANGE", &Changes::by_clone},
      {"O_DIRECT", &Changes::by_direct_write},
      {"io_submit", &Changes::by_io_submit},
      {"io_uring", &Changes::by_ring},
      {"io_uring's truncate", &Changes::by_ring_truncate},
      {"a hard link", &Changes::by_link},
      {"another namespace", &Changes::by_other_namespace},
      {"rename", &Changes::by_rename},
      {"dropping its pages", &Changes::by_dropping},
  };
};
