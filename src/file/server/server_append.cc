// SPDX-License-Identifier: Apache-2.0
// Appends. A repeated one must not be carried out twice.
#include <unistd.h>

#include <cerrno>
#include <span>

#include "file/server/server_calls.hpp"
#include "file/wire/already_written.hpp"

namespace wherry::file {

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
    const auto there = already_appended(backing.descriptor(), request.header.offset, data);
    if (!there) return {.error = EIO};
    before = *there;
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
