// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/socket_io.hpp"

#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace wherry::bench {

void check(bool holds, const char* what) {
  if (!holds) throw std::system_error(errno, std::system_category(), what);
}

void write_all_to(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    check(n > 0 || errno == EINTR, "write");
    if (n > 0) bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void read_all_from(int descriptor, std::span<std::byte> buffer) {
  while (!buffer.empty()) {
    const ssize_t n = ::read(descriptor, buffer.data(), buffer.size());
    if (n == 0) throw std::runtime_error("the sender is gone");
    check(n > 0 || errno == EINTR, "read");
    if (n > 0) buffer = buffer.subspan(static_cast<std::size_t>(n));
  }
}

}  // namespace wherry::bench
