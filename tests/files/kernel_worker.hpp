// SPDX-License-Identifier: Apache-2.0
// A process that makes random calls on one file by the C library, and compares each byte that it reads.
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
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/files/seen.hpp"
#include "tests/files/truth.hpp"

class KernelWorker {
 public:
  KernelWorker(Truth& truth, const char* path, std::uint64_t seed) : truth_(truth), path_(path), random_(seed) {
    open_all();
  }

  void make(unsigned operations) {
    for (unsigned i = 0; i < operations; i++) one();
  }

  [[nodiscard]] std::uint64_t unseen() const { return unseen_; }

  void sync() const { want(fsync(both_) == 0, "fsync"); }

  void reopen() {
    close(reading_);
    close(both_);
    close(appending_);
    open_all();
  }

  /// Nothing is cached while the file is changed: reads alone, often enough that a descriptor is worth looking at.
  void read_quietly() {
    usleep(25'000);
    unseen_ += unseen_of(1500, [this](std::uint64_t) { (below(2) != 0) ? pread_some() : read_some(); });
  }

 private:
  using Operation = void (KernelWorker::*)();

  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }

  void one() {
    static constexpr std::array kOften{&KernelWorker::pread_some, &KernelWorker::read_some, &KernelWorker::pread_some,
                                       &KernelWorker::seek};
    static constexpr std::array kSeldom{&KernelWorker::pwrite_some, &KernelWorker::write_some, &KernelWorker::append,
                                        &KernelWorker::cut,         &KernelWorker::punch,      &KernelWorker::copy,
                                        &KernelWorker::share,       &KernelWorker::vectored};
    static constexpr std::array kRare{&KernelWorker::reopen, &KernelWorker::fork_reader, &KernelWorker::by_stdio};
    const std::size_t chance = below(100);
    const Operation operation = chance > 10  ? kOften[below(kOften.size())]
                                : chance > 0 ? kSeldom[below(kSeldom.size())]
                                             : kRare[below(kRare.size())];
    (this->*operation)();
  }

  void open_all() {
    reading_ = open(path_, O_RDONLY | O_CLOEXEC);
    both_ = open(path_, O_RDWR | O_CLOEXEC);
    appending_ = open(path_, O_WRONLY | O_APPEND | O_CLOEXEC);
    want(reading_ >= 0 && both_ >= 0 && appending_ >= 0, "open");
    offset_ = 0;
  }

  std::size_t some_length() {
    static constexpr std::array<std::size_t, 4> kMostOf{512, 4096, 40'000, 200'000};
    return 1 + below(kMostOf[below(kMostOf.size())]);
  }
  std::size_t some_offset() { return below(std::max<std::size_t>(truth_.size + truth_.size / 8, 1)); }

  void compare(const char* what, const unsigned char* got, ssize_t bytes, std::size_t offset, std::size_t length) {
    truth_.reads++;
    const std::size_t expected = offset >= truth_.size ? 0 : std::min(length, truth_.size - offset);
    if (bytes != static_cast<ssize_t>(expected)) {
      fail("%s: %zd bytes of %zu at %zu, not %zu (size %zu)", what, bytes, length, offset, expected, truth_.size);
    }
    for (std::size_t i = 0; i < expected; i++) {
      if (got[i] == truth_.bytes[offset + i]) continue;
      fail("%s: byte %zu is %02x, not %02x (read of %zu at %zu, size %zu)", what, offset + i, got[i],
           truth_.bytes[offset + i], length, offset, truth_.size);
    }
  }

  void pread_some() {
    const std::size_t offset = some_offset();
    const std::size_t length = some_length();
    buffer_.resize(length);
    const int fd = below(2) == 0 ? reading_ : both_;
    compare("pread", buffer_.data(), pread(fd, buffer_.data(), length, static_cast<off_t>(offset)), offset, length);
  }

  void read_some() {
    const std::size_t length = some_length();
    buffer_.resize(length);
    const ssize_t got = read(reading_, buffer_.data(), length);
    compare("read", buffer_.data(), got, offset_, length);
    offset_ += static_cast<std::size_t>(got);
    if (got == 0) seek();
  }

  void vectored() {
    std::array<unsigned char, 700> first{};
    std::array<unsigned char, 3000> second{};
    const std::array<iovec, 2> parts{iovec{first.data(), first.size()}, iovec{second.data(), second.size()}};
    const ssize_t got = readv(reading_, parts.data(), 2);
    std::vector<unsigned char> both(first.begin(), first.end());
    both.insert(both.end(), second.begin(), second.end());
    compare("readv", both.data(), got, offset_, both.size());
    offset_ += static_cast<std::size_t>(got);
  }

  void seek() {
    const std::size_t to = some_offset();
    switch (below(3)) {
      case 0:
        want(lseek(reading_, static_cast<off_t>(to), SEEK_SET) == static_cast<off_t>(to), "SEEK_SET");
        break;
      case 1:
        want(lseek(reading_, static_cast<off_t>(to) - static_cast<off_t>(offset_), SEEK_CUR) == static_cast<off_t>(to),
             "SEEK_CUR");
        break;
      default:
        want(lseek(reading_, static_cast<off_t>(to) - static_cast<off_t>(truth_.size), SEEK_END) ==
                 static_cast<off_t>(to),
             "SEEK_END");
    }
    offset_ = to;
    want(lseek(reading_, 0, SEEK_CUR) == static_cast<off_t>(to), "the offset after a seek");
  }

  void fill(std::size_t length) {
    buffer_.resize(length);
    for (auto& byte : buffer_) byte = static_cast<unsigned char>(random_());
  }

  void became(std::size_t offset, const unsigned char* bytes, std::size_t length) {
    if (offset > truth_.size)
      std::fill_n(truth_.bytes.begin() + static_cast<long>(truth_.size), offset - truth_.size, 0);
    std::copy_n(bytes, length, truth_.bytes.begin() + static_cast<long>(offset));
    truth_.size = std::max(truth_.size, offset + length);
  }

  void pwrite_some() {
    const std::size_t offset = std::min(some_offset(), kMost - 1);
    fill(std::min(some_length(), kMost - offset));
    want(pwrite(both_, buffer_.data(), buffer_.size(), static_cast<off_t>(offset)) ==
             static_cast<ssize_t>(buffer_.size()),
         "pwrite");
    became(offset, buffer_.data(), buffer_.size());
  }

  void write_some() {
    const std::size_t offset = std::min(some_offset(), kMost - 1);
    fill(std::min(some_length(), kMost - offset));
    want(lseek(both_, static_cast<off_t>(offset), SEEK_SET) == static_cast<off_t>(offset), "lseek");
    want(write(both_, buffer_.data(), buffer_.size()) == static_cast<ssize_t>(buffer_.size()), "write");
    became(offset, buffer_.data(), buffer_.size());
  }

  void append() {
    fill(std::min({some_length(), std::size_t{5000}, kMost - truth_.size}));
    want(write(appending_, buffer_.data(), buffer_.size()) == static_cast<ssize_t>(buffer_.size()), "append");
    became(truth_.size, buffer_.data(), buffer_.size());
  }

  void cut() {
    const std::size_t size = std::min(truth_.size / 2 + below(truth_.size + 1), kMost);
    const bool by_name = below(2) == 0;
    const auto length = static_cast<off_t>(size);
    want((by_name ? truncate(path_, length) : ftruncate(both_, length)) == 0, "truncate");
    if (size > truth_.size) std::fill_n(truth_.bytes.begin() + static_cast<long>(truth_.size), size - truth_.size, 0);
    truth_.size = size;
  }

  void punch() {
    const std::size_t offset = some_offset();
    const std::size_t length = some_length();
    if (fallocate(both_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(length)) != 0) {
      want(errno == EOPNOTSUPP, "fallocate");
      return;
    }
    const std::size_t end = std::min(truth_.size, offset + length);
    for (std::size_t i = offset; i < end; i++) truth_.bytes[i] = 0;
  }

  void copy() {
    const std::size_t half = truth_.size / 2;
    off64_t from = static_cast<off64_t>(below(half + 1));
    off64_t to = static_cast<off64_t>(half + below(half + 1));
    const std::size_t room = std::min(half - static_cast<std::size_t>(from), kMost - static_cast<std::size_t>(to));
    const auto begin = static_cast<std::size_t>(from);
    const auto target = static_cast<std::size_t>(to);
    const ssize_t copied = copy_file_range(both_, &from, both_, &to, std::min(some_length(), room), 0);
    want(copied >= 0, "copy_file_range");
    const std::vector<unsigned char> bytes(truth_.bytes.begin() + static_cast<long>(begin),
                                           truth_.bytes.begin() + static_cast<long>(begin) + copied);
    became(target, bytes.data(), bytes.size());
  }

  /// A second number for the descriptor: one offset. Then the number is another file's.
  void share() {
    const int second = below(2) == 0 ? dup(reading_) : fcntl(reading_, F_DUPFD_CLOEXEC, 50);
    want(second >= 0, "dup");
    buffer_.resize(some_length());
    const ssize_t got = read(second, buffer_.data(), buffer_.size());
    compare("read of a dup", buffer_.data(), got, offset_, buffer_.size());
    offset_ += static_cast<std::size_t>(got);
    const int other = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    want(dup2(other, second) == second, "dup2");
    std::array<char, 4> magic{};
    for (int i = 0; i < 4; i++) want(pread(second, magic.data(), 4, 0) == 4, "pread of a dup2");
    want(std::memcmp(magic.data(),
                     "\x7f"
                     "ELF",
                     4) == 0,
         "the bytes of a dup2");
    close(second);
    close(other);
  }

  /// A child reads on where its parent was, and the parent where the child was.
  void fork_reader() {
    const pid_t child = fork();
    if (child == 0) {
      for (int i = 0; i < 3; i++) read_some();
      pread_some();
      pwrite_some();
      std::_Exit(0);
    }
    int status = 0;
    want(waitpid(child, &status, 0) == child && status == 0, "a child");
    const off_t now = lseek(reading_, 0, SEEK_CUR);
    want(now >= 0, "lseek");
    offset_ = static_cast<std::size_t>(now);
    read_some();
  }

  void by_stdio() {
    FILE* const file = std::fopen(path_, "r+");
    want(file != nullptr, "fopen");
    const std::size_t offset = std::min(some_offset(), kMost - 1);
    fill(std::min({some_length(), std::size_t{6000}, kMost - offset}));
    std::fseek(file, static_cast<long>(offset), SEEK_SET);
    want(std::fwrite(buffer_.data(), 1, buffer_.size(), file) == buffer_.size(), "fwrite");
    want(below(2) == 0 || std::fflush(file) == 0, "fflush");
    want(std::fclose(file) == 0, "fclose");
    became(offset, buffer_.data(), buffer_.size());
  }

  Truth& truth_;
  const char* path_;
  std::mt19937_64 random_;
  std::uint64_t unseen_ = 0;
  int reading_ = -1;
  int both_ = -1;
  int appending_ = -1;
  std::size_t offset_ = 0;  // of reading_
  std::vector<unsigned char> buffer_;
};
