// SPDX-License-Identifier: Apache-2.0
// Reads of a file that is changed beside them: each byte is compared with what the file must have.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "tests/files/beside.hpp"
#include "tests/files/seen.hpp"

class Rereads {
 public:
  /// `window`: another process makes the file shorter, which may be seen later.
  Rereads(Beside& beside, const char* path, std::uint64_t seed, bool window)
      : beside_(beside), truth_(beside.truth), path_(path), random_(seed), window_(window) {
    open_all();
  }

  void make(unsigned reads) {
    if (beside_.replaced.load() != replaced_) reopen();
    // Now and then the window is left: then the end must be known.
    if (window_ && below(4) == 0 && in_window(clock_now())) {
      usleep(kWindow / 1000);
      by_end(reading_);
      by_end(both_);
    }
    made_.reads += reads;
    others_ = 0;
    const std::uint64_t unseen = unseen_of(reads, [this](std::uint64_t) { one(); });
    made_.unseen += unseen > others_ ? unseen - others_ : 0;
  }

  [[nodiscard]] const ReadsMade& made() const { return made_; }

 private:
  using Read = void (Rereads::*)();
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;  // of tmpfs mounted with huge=always

  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }

  void one() {
    static constexpr std::array kOften{&Rereads::by_pread, &Rereads::by_pread, &Rereads::by_read, &Rereads::by_readv,
                                       &Rereads::by_preadv};
    static constexpr std::array kSeldom{&Rereads::by_dup, &Rereads::by_child, &Rereads::by_stdio, &Rereads::by_mapping,
                                        &Rereads::by_seek_from_end};
    const bool rare = below(60) == 0;
    const Read read = rare ? kSeldom[below(kSeldom.size())] : kOften[below(kOften.size())];
    (this->*read)();
    if (below(3000) == 0) reopen();
  }

  void open_all() {
    replaced_ = beside_.replaced.load();
    reading_ = open(path_, O_RDONLY | O_CLOEXEC);
    both_ = open(path_, O_RDWR | O_CLOEXEC);
    struct stat status{};
    want(reading_ >= 0 && both_ >= 0 && fstat(reading_, &status) == 0, "open");
    page_ = status.st_blksize == kHugePage ? kHugePage : kPageBytes;
    offset_ = 0;
  }
  void reopen() {
    close(reading_);
    close(both_);
    open_all();
  }

  [[nodiscard]] bool in_window(std::uint64_t now) const { return now < beside_.shortened.load() + kWindow; }

  std::size_t some_length() {
    static constexpr std::array<std::size_t, 4> kMostOf{100, 4096, 10'000, 60'000};
    return 1 + below(kMostOf[below(kMostOf.size())]);
  }
  std::size_t some_offset() {
    // Often where the file ends.
    if (below(4) != 0 || truth_.size < 10'000) return below(truth_.size + 5000);
    return truth_.size - below(10'000);
  }

  /// Zeros up to the end of the page in which the file ends, by a read that began at `begun`.
  [[nodiscard]] bool may_be_zeros(const std::vector<unsigned char>& got, std::size_t offset, std::size_t bytes,
                                  std::uint64_t begun) const {
    const std::size_t page_end = (truth_.size + page_ - 1) / page_ * page_;
    const std::size_t zeros = truth_.size <= offset ? 0 : truth_.size - offset;
    return window_ && in_window(begun) && offset + bytes <= page_end &&
           std::all_of(got.begin() + static_cast<long>(zeros), got.begin() + static_cast<long>(bytes),
                       [](unsigned char byte) { return byte == 0; });
  }

  /// Reads by `read(buffer, length)` and compares. Returns its result.
  template <typename Read>
  std::size_t check(const char* what, std::size_t offset, std::size_t length, Read read) {
    buffer_.assign(length, 0xa5);
    const std::uint64_t begun = clock_now();
    const ssize_t result = read(buffer_.data(), length);
    want(result >= 0, what);
    const auto bytes = static_cast<std::size_t>(result);
    const std::size_t expected = offset >= truth_.size ? 0 : std::min(length, truth_.size - offset);
    if (bytes != expected && (bytes < expected || !may_be_zeros(buffer_, offset, bytes, begun))) {
      fail("%s: %zu bytes of %zu at %zu, not %zu (size %zu)", what, bytes, length, offset, expected, truth_.size);
    }
    for (std::size_t i = 0; i < expected; i++) {
      if (buffer_[i] == truth_.bytes[offset + i]) continue;
      fail("%s: byte %zu is %02x, not %02x (read of %zu at %zu, size %zu)", what, offset + i, buffer_[i],
           truth_.bytes[offset + i], length, offset, truth_.size);
    }
    return bytes;
  }

  void by_pread() {
    const std::size_t offset = some_offset();
    const int fd = below(2) == 0 ? reading_ : both_;
    check("pread", offset, some_length(),
          [&](unsigned char* to, std::size_t length) { return pread(fd, to, length, static_cast<off_t>(offset)); });
  }
  void by_end(int fd) {
    const std::size_t offset = truth_.size - std::min<std::size_t>(truth_.size, 100);
    check("pread over the end", offset, 2000,
          [&](unsigned char* to, std::size_t length) { return pread(fd, to, length, static_cast<off_t>(offset)); });
  }
  template <typename Call>
  void in_two_parts(const char* what, std::size_t offset, Call call) {
    const std::size_t first = below(5000);
    const std::size_t bytes = check(what, offset, first + some_length(), [&](unsigned char* to, std::size_t length) {
      const std::array<iovec, 2> parts{iovec{to, first}, iovec{to + first, length - first}};
      return call(parts.data());
    });
    read_ = bytes;
  }
  void by_preadv() {
    const std::size_t offset = some_offset();
    in_two_parts("preadv", offset,
                 [&](const iovec* parts) { return preadv2(both_, parts, 2, static_cast<off_t>(offset), 0); });
  }
  void by_readv() {
    in_two_parts("readv", offset_, [&](const iovec* parts) { return readv(reading_, parts, 2); });
    moved(read_);
  }
  void by_read() { on(reading_); }
  void on(int fd) {
    moved(check("read", offset_, some_length(),
                [fd](unsigned char* to, std::size_t length) { return read(fd, to, length); }));
  }
  /// At the end of the file begin anywhere.
  void moved(std::size_t bytes) {
    offset_ += bytes;
    if (bytes != 0 && below(20) != 0) return;
    const std::size_t to = below(truth_.size + 1);
    const auto step = static_cast<off_t>(to) - static_cast<off_t>(offset_);
    const bool steps = below(2) == 0;
    want(lseek(reading_, steps ? step : static_cast<off_t>(to), steps ? SEEK_CUR : SEEK_SET) == static_cast<off_t>(to),
         "lseek");
    offset_ = to;
  }
  void by_seek_from_end() {
    others_++;
    const off_t size = lseek(reading_, 0, SEEK_END);
    if (size != static_cast<off_t>(truth_.size)) fail("SEEK_END: %ld, not %zu", static_cast<long>(size), truth_.size);
    offset_ = truth_.size;
    moved(0);
  }
  void by_dup() {
    const int second = dup(reading_);
    want(second >= 0, "dup");
    on(second);
    close(second);
    // Its offset stays shared: the next reads are to be made in place again.
    if (below(16) == 0) reopen();
  }
  void by_child() {
    const pid_t child = fork();
    if (child == 0) {
      by_pread();
      on(reading_);
      std::_Exit(0);
    }
    int status = 0;
    want(waitpid(child, &status, 0) == child && status == 0, "a child");
    const off_t now = lseek(reading_, 0, SEEK_CUR);
    want(now >= 0, "lseek");
    offset_ = static_cast<std::size_t>(now);
    on(reading_);
    if (below(16) == 0) reopen();
  }
  void by_stdio() {
    FILE* const file = std::fopen(path_, "r");
    const std::size_t offset = some_offset();
    want(file != nullptr && std::fseek(file, static_cast<long>(offset), SEEK_SET) == 0, "fopen");
    check("fread", offset, some_length(), [file](unsigned char* to, std::size_t length) {
      return static_cast<ssize_t>(std::fread(to, 1, length, file));
    });
    std::fclose(file);
  }
  void by_mapping() {
    others_++;
    const std::size_t offset = truth_.size == 0 ? 0 : below(truth_.size);
    const std::size_t length = std::min(some_length(), truth_.size - offset);
    if (length == 0) return;
    void* const mapping = mmap(nullptr, truth_.size, PROT_READ, MAP_SHARED, reading_, 0);
    want(mapping != MAP_FAILED, "mmap");
    check("a mapping", offset, length, [&](unsigned char* to, std::size_t bytes) {
      std::copy_n(static_cast<unsigned char*>(mapping) + offset, bytes, to);
      return static_cast<ssize_t>(bytes);
    });
    munmap(mapping, truth_.size);
  }

  Beside& beside_;
  Truth& truth_;
  const char* path_;
  std::mt19937_64 random_;
  bool window_;
  ReadsMade made_;
  std::uint64_t others_ = 0;  // that are no read calls
  std::uint64_t replaced_ = 0;
  std::size_t page_ = kPageBytes;
  int reading_ = -1;
  int both_ = -1;
  std::size_t offset_ = 0;  // of reading_
  std::size_t read_ = 0;
  std::vector<unsigned char> buffer_;
};
