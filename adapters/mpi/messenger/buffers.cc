// SPDX-License-Identifier: Apache-2.0
#include "buffers.hpp"

#include <algorithm>
#include <cstring>

namespace wherry::mpi {
namespace {

void move_bytes(void* to, const void* from, std::size_t bytes) { std::memmove(to, from, bytes); }

}  // namespace

Buffers::Buffers(std::span<const iovec> ranges) : count_(std::min(ranges.size(), kMostBuffers)) {
  for (std::size_t i = 0; i < count_; ++i) {
    ranges_[i] = ranges[i];
    bytes_ += ranges[i].iov_len;
  }
}

std::span<std::byte> Buffers::at(std::uint64_t offset, std::uint64_t most) const {
  for (const iovec& range : ranges()) {
    if (offset < range.iov_len) {
      return {static_cast<std::byte*>(range.iov_base) + offset, std::min<std::uint64_t>(range.iov_len - offset, most)};
    }
    offset -= range.iov_len;
  }
  return {};
}

void Buffers::scatter(std::uint64_t offset, std::span<const std::byte> from, Copy* copy) const {
  while (!from.empty()) {
    const std::span<std::byte> to = at(offset, from.size());
    if (to.empty()) return;
    copy(to.data(), from.data(), to.size());
    from = from.subspan(to.size());
    offset += to.size();
  }
}

void Buffers::copy_to(const Buffers& to) const {
  std::uint64_t offset = 0;
  for (const iovec& range : ranges()) {
    to.scatter(offset, {static_cast<const std::byte*>(range.iov_base), range.iov_len}, move_bytes);
    offset += range.iov_len;
  }
}

Buffers Buffers::copied(std::unique_ptr<std::byte[]>& copy) const {
  copy = std::make_unique_for_overwrite<std::byte[]>(bytes_);
  gather(copy.get());
  return {copy.get(), bytes_};
}

Buffers Buffers::shortened(std::uint64_t bytes) const {
  Buffers result;
  for (const iovec& range : ranges()) {
    const std::uint64_t part = std::min<std::uint64_t>(range.iov_len, bytes - result.bytes_);
    result.ranges_[result.count_++] = {range.iov_base, part};
    result.bytes_ += part;
  }
  return result;
}

}  // namespace wherry::mpi
