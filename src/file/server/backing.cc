// SPDX-License-Identifier: Apache-2.0
#include "file/server/backing.hpp"

#include <unistd.h>

#include <cerrno>

#include "file/mapped/truncations.hpp"
#include "file/wire/status.hpp"

namespace wherry::file {
namespace {

template <class Call>
ssize_t uninterrupted(Call call) {
  ssize_t result = -1;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

}  // namespace

ssize_t Backing::read(std::span<const iovec> into, std::uint64_t offset) {
  return uninterrupted(
      [&] { return ::preadv(descriptor(), into.data(), static_cast<int>(into.size()), static_cast<off_t>(offset)); });
}

ssize_t Backing::write(std::span<const iovec> from, std::uint64_t offset) {
  return uninterrupted(
      [&] { return ::pwritev(descriptor(), from.data(), static_cast<int>(from.size()), static_cast<off_t>(offset)); });
}

ssize_t Backing::append(std::span<const std::byte> data) {
  return uninterrupted([&] { return ::write(descriptor(), data.data(), data.size()); });
}

ssize_t Backing::copy(std::uint64_t offset, const Backing& to, std::uint64_t to_offset, std::size_t bytes) {
  return uninterrupted([&] {
    auto from_here = static_cast<off_t>(offset);
    auto to_there = static_cast<off_t>(to_offset);
    return ::copy_file_range(descriptor(), &from_here, to.descriptor(), &to_there, bytes, 0);
  });
}

int Backing::flush(bool data_only) {
  return (data_only ? ::fdatasync(descriptor()) : ::fsync(descriptor())) == 0 ? 0 : errno;
}

int Backing::status(layout::FileStatus& status) { return status_of(descriptor(), status); }

int Backing::set_size(std::uint64_t size) { return mapped::set_size(descriptor(), size); }

int Backing::close() { return ::close(descriptor_.release()) == 0 ? 0 : errno; }

}  // namespace wherry::file
