// SPDX-License-Identifier: Apache-2.0
#include "file/wire/already_written.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "file/wire/open_again.hpp"

namespace wherry::file {

bool holds(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes) {
  // O_NONBLOCK: must not wait for a lease on the file, which may be the client's own.
  const UniqueFd file = open_again(descriptor, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  std::vector<std::byte> there(bytes.size());
  std::size_t got = 0;
  while (got < there.size()) {
    const ssize_t n = ::pread(file.get(), there.data() + got, there.size() - got, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    got += static_cast<std::size_t>(n);
  }
  return std::ranges::equal(there, bytes);
}

std::optional<std::size_t> already_appended(int descriptor, std::uint64_t end, std::span<const std::byte> data) {
  struct ::stat status{};
  if (::fstat(descriptor, &status) != 0) return {};
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size < end || size - end > data.size()) return {};
  const std::size_t there = size - end;
  if (!holds(descriptor, end, data.first(there))) return {};
  return there;
}

}  // namespace wherry::file
