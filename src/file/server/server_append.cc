// SPDX-License-Identifier: Apache-2.0
// Appends. A repeated one must not be carried out twice.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <vector>

#include "file/server/server_calls.hpp"
#include "file/wire/open_again.hpp"

namespace wherry::file {
namespace {

/// Whether the file has these bytes at `offset`. The descriptor may be write-only.
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

}  // namespace

bool Calls::has(const Request& request, std::span<const std::byte> data) {
  const OpenFile* const file = handles_.find(request.header.handle);
  return file != nullptr && holds(file->backing->descriptor(), request.header.offset, data);
}

/// A repeated append first finds out how much of it is in the file already: compares the end of the file with the data.
Outcome Calls::append(const Request& request, std::span<const std::byte> data) {
  const OpenFile* const file = handles_.find(request.header.handle);
  if (file == nullptr) return {.error = EBADF};
  Backing& backing = *file->backing;
  std::uint64_t before = 0;
  if (request.header.repeated != 0) {
    const off_t size = ::lseek(backing.descriptor(), 0, SEEK_END);
    const auto expected = request.header.offset;
    if (size < 0 || static_cast<std::uint64_t>(size) < expected || size - expected > data.size()) return {.error = EIO};
    before = static_cast<std::uint64_t>(size) - expected;
    if (!holds(backing.descriptor(), expected, data.first(before))) return {.error = EIO};
  }
  data = data.subspan(before);
  const ssize_t put = backing.append(data);
  const int error = put < 0 ? errno : 0;
  const off_t end = ::lseek(backing.descriptor(), 0, put < 0 ? SEEK_END : SEEK_CUR);
  return {.error = error,
          .value = before + (put < 0 ? 0 : static_cast<std::uint64_t>(put)),
          .position = end < 0 ? 0 : static_cast<std::uint64_t>(end)};
}

}  // namespace wherry::file
