// SPDX-License-Identifier: Apache-2.0
// A file that is changed at random places, and what it has afterwards.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/files/beside.hpp"

class ChangedFile {
 protected:
  struct Range {
    std::size_t offset;
    std::size_t length;
  };

  /// `names`: of the one file, each by another way.
  ChangedFile(Beside& beside, std::vector<std::string> names, std::uint64_t seed)
      : beside_(beside), truth_(beside.truth), names_(std::move(names)), random_(seed) {
    const std::string donor = names_[0] + ".donor." + std::to_string(getpid());
    donor_ = open(donor.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    want(donor_ >= 0 && unlink(donor.c_str()) == 0, "open");
    donated_.resize(kMost / 4);
    for (auto& byte : donated_) byte = static_cast<unsigned char>(random_());
    want(write(donor_, donated_.data(), donated_.size()) == static_cast<ssize_t>(donated_.size()), "write");
  }

  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }

  static bool cannot(const char* what) {
    constexpr std::array kAllowed{EOPNOTSUPP, EINVAL, EPERM, ENOSYS, EXDEV, EBUSY, ENOTTY};
    want(std::find(kAllowed.begin(), kAllowed.end(), errno) != kAllowed.end(), what);
    return false;
  }

  std::size_t some_length() {
    static constexpr std::array<std::size_t, 4> kMostOf{64, 4096, 20'000, 100'000};
    return 1 + below(kMostOf[below(kMostOf.size())]);
  }
  /// To be written: begins at most a little behind the end.
  Range some() {
    const std::size_t offset = std::min(below(truth_.size + 5000), kMost - 1);
    return {.offset = offset, .length = std::min(some_length(), kMost - offset)};
  }
  /// Below the end. Empty: there is none.
  Range some_inside() {
    if (truth_.size == 0) return {};
    const std::size_t offset = below(truth_.size);
    return {.offset = offset, .length = std::min(some_length(), truth_.size - offset)};
  }
  /// In whole pages, from offset 0 to the file's last whole page. Empty: there is none.
  Range some_pages() {
    const std::size_t pages = truth_.size / kPageBytes;
    if (pages == 0) return {};
    const std::size_t first = below(pages);
    return {.offset = first * kPageBytes, .length = (1 + below(std::min<std::size_t>(pages - first, 8))) * kPageBytes};
  }
  unsigned char* fill(std::size_t length) {
    bytes_.resize(length);
    for (auto& byte : bytes_) byte = static_cast<unsigned char>(random_());
    return bytes_.data();
  }
  static off_t at(std::size_t offset) { return static_cast<off_t>(offset); }
  static bool whole(long result, std::size_t length) { return result == static_cast<long>(length); }

  void became(std::size_t offset, const unsigned char* bytes, std::size_t length) {
    if (length == 0) return;
    if (offset > truth_.size) std::fill_n(&truth_.bytes[truth_.size], offset - truth_.size, 0);
    std::copy_n(bytes, length, &truth_.bytes[offset]);
    truth_.size = std::max(truth_.size, offset + length);
  }
  void zeroed(Range range) { std::fill_n(truth_.bytes.begin() + at(range.offset), range.length, 0); }
  void resized(std::size_t size) {
    if (size > truth_.size) zeroed({.offset = truth_.size, .length = size - truth_.size});
    truth_.size = size;
  }

  Beside& beside_;
  Truth& truth_;
  std::vector<std::string> names_;
  std::mt19937_64 random_;
  int donor_ = -1;
  int fd_ = -1;
  std::vector<unsigned char> donated_;
  std::vector<unsigned char> bytes_;
};
