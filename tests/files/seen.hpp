// SPDX-License-Identifier: Apache-2.0
// Which reads a process has made without the kernel.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

/// Read calls that the kernel counted for this process.
inline std::uint64_t seen_by_kernel() {
  std::array<char, 512> text{};
  const int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
  const ssize_t n = read(fd, text.data(), text.size() - 1);
  close(fd);
  const char* const line = n > 0 ? std::strstr(text.data(), "syscr: ") : nullptr;
  return line == nullptr ? 0 : std::strtoull(line + 7, nullptr, 10);
}

/// How many of the calls that `read(i)` makes, each one read, the kernel has not counted.
template <class Read>
std::uint64_t unseen_of(std::uint64_t calls, Read read) {
  const std::uint64_t before = seen_by_kernel();
  for (std::uint64_t i = 0; i < calls; i++) read(i);
  const std::uint64_t seen = seen_by_kernel() - before;
  return calls > seen ? calls - seen : 0;
}
