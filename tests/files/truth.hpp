// SPDX-License-Identifier: Apache-2.0
// What the programs of this folder compare a file with: memory that all processes of a test share.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

constexpr std::size_t kMost = std::size_t{1} << 20;  // bytes of the file

struct Truth {
  std::size_t size = 0;
  std::uint64_t reads = 0;  // calls
  std::array<unsigned char, kMost> bytes{};
};

[[noreturn]] inline void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
  std::_Exit(1);
}

inline void want(bool right, const char* what) {
  if (!right) fail("%s: %s", what, std::strerror(errno));
}

/// Half of what it may have.
inline void make_file(Truth& truth, const char* path, std::mt19937_64& random) {
  truth.size = kMost / 2;
  for (std::size_t i = 0; i < truth.size; i++) truth.bytes[i] = static_cast<unsigned char>(random());
  const int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  want(write(file, truth.bytes.data(), truth.size) == static_cast<ssize_t>(truth.size), "write");
  close(file);
}
