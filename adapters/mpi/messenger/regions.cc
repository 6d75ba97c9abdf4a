// SPDX-License-Identifier: Apache-2.0
#include "regions.hpp"

#include <rdma/fi_errno.h>

namespace wherry::mpi {
namespace {

int check(const Region& region, const RemoteRange& range, Access access) {
  if ((access.reads && !region.readable) || (access.writes && !region.writable)) return FI_EACCES;
  const std::uint64_t offset = range.address - region.first;  // an address below `first` wraps around and is too large
  return offset <= region.bytes && range.bytes <= region.bytes - offset ? 0 : FI_EINVAL;
}

}  // namespace

bool Regions::add(Region& region) { return regions_.try_emplace(region.key, &region).second; }

std::uint64_t Regions::free_key() {
  do {
    ++last_key_;
  } while (regions_.contains(last_key_));
  return last_key_;
}

Regions::Found Regions::find(std::span<const RemoteRange> ranges, Access access) const {
  Found found;
  std::array<iovec, kMostRemoteRanges> memory;
  std::size_t count = 0;
  for (const RemoteRange& range : ranges) {
    if (range.bytes == 0) continue;
    const auto region = regions_.find(range.key);
    const int error = region == regions_.end() ? FI_ENOKEY : check(*region->second, range, access);
    if (error != 0) return Found::nothing(error);
    found.regions[count] = region->second;
    memory[count++] = {static_cast<std::byte*>(region->second->memory) + (range.address - region->second->first),
                       range.bytes};
  }
  found.buffers = Buffers(std::span(memory.data(), count));
  return found;
}

}  // namespace wherry::mpi
