// SPDX-License-Identifier: Apache-2.0
#include "file/mount/device_io.hpp"

#include <linux/fuse.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace wherry::file::mount {
namespace {

/// A request that this thread has read and that offers the capability; 0: none. The answer comes from the same thread.
thread_local std::uint64_t offer = 0;

ssize_t read_request(int device, void* buffer, std::size_t bytes, void* /*system*/) {
  const ssize_t got = ::read(device, buffer, bytes);
  fuse_in_header header{};
  fuse_init_in content{};
  constexpr std::size_t kToFlags = offsetof(fuse_init_in, flags) + sizeof content.flags;
  if (got < static_cast<ssize_t>(sizeof header)) return got;
  std::memcpy(&header, buffer, sizeof header);
  if (header.opcode != FUSE_INIT || got < static_cast<ssize_t>(sizeof header + kToFlags)) return got;
  std::memcpy(&content, static_cast<const std::byte*>(buffer) + sizeof header, kToFlags);
  if ((content.flags & FUSE_HANDLE_KILLPRIV_V2) != 0) offer = header.unique;
  return got;
}

ssize_t write_answer(int device, iovec* parts, int count, void* /*system*/) {
  if (offer != 0) {
    fuse_out_header header{};
    fuse_init_out content{};
    constexpr std::size_t kToFlags = offsetof(fuse_init_out, flags) + sizeof content.flags;
    if (count == 2 && parts[0].iov_len == sizeof header && parts[1].iov_len >= kToFlags) {
      std::memcpy(&header, parts[0].iov_base, sizeof header);
      std::memcpy(&content, parts[1].iov_base, kToFlags);
      content.flags |= FUSE_HANDLE_KILLPRIV_V2;
      if (header.unique == offer && header.error == 0) std::memcpy(parts[1].iov_base, &content, kToFlags);
    }
    offer = 0;
  }
  return ::writev(device, parts, count);
}

}  // namespace

const fuse_custom_io& device_io() {
  static constexpr fuse_custom_io kFunctions{
      .writev = write_answer, .read = read_request, .splice_receive = nullptr, .splice_send = nullptr};
  return kFunctions;
}

}  // namespace wherry::file::mount
