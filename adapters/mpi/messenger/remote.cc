// SPDX-License-Identifier: Apache-2.0
#include "remote.hpp"

#include <rdma/fabric.h>

#include "atomics.hpp"
#include "regions.hpp"

namespace wherry::mpi {

std::uint64_t RemoteRequest::bytes() const {
  std::uint64_t sum = 0;
  for (const RemoteRange& range : targets()) sum += range.bytes;
  return sum;
}

bool RemoteRequest::fits() const {
  const std::uint64_t named = bytes();
  if (operation == Operation::write) return source.bytes() == named;
  if (operation == Operation::read) return result.bytes() == named;
  return named > 0 && (only_reads(action) || source.bytes() == named) && (!fetches || result.bytes() == named) &&
         (!compares(action) || comparand.bytes() == named);
}

std::uint64_t RemoteRequest::flags() const {
  if (operation == Operation::atomic) return FI_ATOMIC | (fetches ? FI_READ : FI_WRITE);
  return FI_RMA | (operation == Operation::read ? FI_READ : FI_WRITE);
}

Access access_of(const PacketHead& packet) {
  if (packet.operation == Operation::read) return {.reads = true, .writes = false};
  if (packet.operation != Operation::atomic) return {.reads = false, .writes = true};
  return {.reads = (packet.flags & kFetches) != 0, .writes = !only_reads(packet.action)};
}

std::uint64_t event_of(const PacketHead& packet) {
  if (packet.operation == Operation::atomic) {
    return FI_ATOMIC | ((packet.flags & kFetches) != 0 ? FI_REMOTE_READ : FI_REMOTE_WRITE);
  }
  return FI_RMA | (packet.operation == Operation::read ? FI_REMOTE_READ : FI_REMOTE_WRITE);
}

std::uint64_t operand_bytes(const PacketHead& packet) {
  if (packet.operation != Operation::atomic) return packet.bytes;
  return packet.bytes * ((only_reads(packet.action) ? 0 : 1) + (compares(packet.action) ? 1 : 0));
}

bool is_valid_atomic(const PacketHead& packet) {
  const AtomicKind kind = compares(packet.action)          ? AtomicKind::compare
                          : (packet.flags & kFetches) != 0 ? AtomicKind::fetch
                                                           : AtomicKind::base;
  if (kind == AtomicKind::compare && (packet.flags & kFetches) == 0) return false;
  return is_atomic(packet.datatype, packet.action, kind) && packet.bytes > 0 && packet.bytes <= kMostAtomicBytes &&
         packet.bytes % bytes_of_datatype(packet.datatype) == 0;
}

void run_atomic(const PacketHead& packet, const Buffers& target, const std::byte* operands, std::byte* result) {
  const std::size_t element = bytes_of_datatype(packet.datatype);
  const std::byte* comparand = compares(packet.action) ? operands + packet.bytes : nullptr;
  if (only_reads(packet.action)) operands = nullptr;
  std::size_t offset = 0;
  const auto at = [&](auto* from) { return from == nullptr ? nullptr : from + offset; };
  for (const iovec& range : target.ranges()) {
    run_atomic(packet.datatype, packet.action,
               {static_cast<std::byte*>(range.iov_base), at(operands), at(comparand), at(result)},
               range.iov_len / element);
    offset += range.iov_len;
  }
}

}  // namespace wherry::mpi
