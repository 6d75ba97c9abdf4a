// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/file/program/pipe.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace wherry::bench::file {

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::system_category(), "pipe");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 256> bytes{};
  for (ssize_t got = 0; (got = ::read(descriptor, bytes.data(), bytes.size())) > 0 || (got < 0 && errno == EINTR);) {
    if (got > 0) text.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace wherry::bench::file
