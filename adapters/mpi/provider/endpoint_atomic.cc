// SPDX-License-Identifier: Apache-2.0
// fi_atomic(3).
#include <rdma/fi_atomic.h>

#include "adapters/mpi/messenger/atomics.hpp"
#include "endpoint.hpp"
#include "objects.hpp"

namespace wherry::mpi {
namespace {

Endpoint& endpoint_of(fid_ep* endpoint) { return *static_cast<Endpoint*>(endpoint); }

/// Arguments of any call: the common ones, and local vectors, which may be empty.
struct Call {
  fi_msg_atomic message;
  AtomicKind kind;
  std::span<const fi_ioc> comparands;
  std::span<const fi_ioc> results;
  bool wanted = true;
};

Buffers buffers_of(std::span<const fi_ioc> elements, std::size_t bytes_of_each) {
  std::array<iovec, kMostBuffers> ranges;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    ranges[i] = {elements[i].addr, elements[i].count * bytes_of_each};
  }
  return Buffers(std::span(ranges.data(), elements.size()));
}

bool are_too_many(const Call& call) {
  return call.message.iov_count > kMostBuffers || call.message.rma_iov_count > kMostRemoteRanges ||
         call.comparands.size() > kMostBuffers || call.results.size() > kMostBuffers;
}

void name_targets(RemoteRequest& request, const fi_msg_atomic& message, std::size_t bytes_of_each) {
  for (const fi_rma_ioc& target : std::span(message.rma_iov, message.rma_iov_count)) {
    request.ranges[request.range_count++] = {target.addr, target.count * bytes_of_each, target.key};
  }
}

ssize_t access(fid_ep* endpoint, const Call& call, std::uint64_t flags) {
  const fi_msg_atomic& message = call.message;
  if (!is_atomic(message.datatype, message.op, call.kind) || (flags & FI_TAGGED) != 0) return -FI_EOPNOTSUPP;
  if (are_too_many(call)) return -FI_EINVAL;
  const std::size_t bytes_of_each = bytes_of_datatype(message.datatype);
  RemoteRequest request;
  request.operation = Operation::atomic;
  request.datatype = static_cast<std::uint8_t>(message.datatype);
  request.action = static_cast<std::uint8_t>(message.op);
  request.fetches = call.kind != AtomicKind::base;
  request.context = message.context;
  request.wanted = call.wanted;
  if (!only_reads(message.op)) request.source = buffers_of({message.msg_iov, message.iov_count}, bytes_of_each);
  request.comparand = buffers_of(call.comparands, bytes_of_each);
  request.result = buffers_of(call.results, bytes_of_each);
  name_targets(request, message, bytes_of_each);
  if (request.bytes() > kMostAtomicBytes) return -FI_EMSGSIZE;
  return endpoint_of(endpoint).access(message.addr, request, flags);
}

/// Arguments of the calls whose names do not end with `msg`.
struct Target {
  fi_addr_t to;
  std::uint64_t address;
  std::uint64_t key;
  fi_datatype datatype;
  fi_op action;
  void* context;
};

ssize_t access(fid_ep* endpoint, const Target& at, std::span<const fi_ioc> operands, Call call, std::uint64_t flags) {
  const std::span<const fi_ioc> counted = call.results.empty() ? operands : call.results;
  std::size_t count = 0;
  for (const fi_ioc& part : counted) count += part.count;
  const fi_rma_ioc target{at.address, count, at.key};
  call.message = {operands.data(), nullptr, operands.size(), at.to, &target, 1, at.datatype, at.action, at.context, 0};
  return access(endpoint, call, flags);
}

fi_ioc part(const void* buffer, std::size_t count) { return {const_cast<void*>(buffer), count}; }

std::uint64_t own_flags(fid_ep* endpoint) { return endpoint_of(endpoint).send_flags(); }

ssize_t write(fid_ep* endpoint, const void* buffer, std::size_t count, void* /*descriptor*/, fi_addr_t to,
              std::uint64_t address, std::uint64_t key, fi_datatype datatype, fi_op action, void* context) {
  const fi_ioc operand = part(buffer, count);
  return access(endpoint, {to, address, key, datatype, action, context}, {&operand, 1},
                {.message = {}, .kind = AtomicKind::base, .comparands = {}, .results = {}}, own_flags(endpoint));
}

ssize_t writev(fid_ep* endpoint, const fi_ioc* operands, void** /*descriptors*/, std::size_t count, fi_addr_t to,
               std::uint64_t address, std::uint64_t key, fi_datatype datatype, fi_op action, void* context) {
  return access(endpoint, {to, address, key, datatype, action, context}, {operands, count},
                {.message = {}, .kind = AtomicKind::base, .comparands = {}, .results = {}}, own_flags(endpoint));
}

ssize_t writemsg(fid_ep* endpoint, const fi_msg_atomic* message, std::uint64_t flags) {
  return access(endpoint, {.message = *message, .kind = AtomicKind::base, .comparands = {}, .results = {}}, flags);
}

ssize_t inject(fid_ep* endpoint, const void* buffer, std::size_t count, fi_addr_t to, std::uint64_t address,
               std::uint64_t key, fi_datatype datatype, fi_op action) {
  const fi_ioc operand = part(buffer, count);
  return access(endpoint, {to, address, key, datatype, action, nullptr}, {&operand, 1},
                {.message = {}, .kind = AtomicKind::base, .comparands = {}, .results = {}, .wanted = false}, FI_INJECT);
}

ssize_t readwrite(fid_ep* endpoint, const void* buffer, std::size_t count, void* /*descriptor*/, void* result,
                  void* /*result_descriptor*/, fi_addr_t to, std::uint64_t address, std::uint64_t key,
                  fi_datatype datatype, fi_op action, void* context) {
  const fi_ioc operand = part(buffer, count);
  const fi_ioc before = part(result, count);
  return access(endpoint, {to, address, key, datatype, action, context}, {&operand, 1},
                {.message = {}, .kind = AtomicKind::fetch, .comparands = {}, .results = {&before, 1}},
                own_flags(endpoint));
}

ssize_t readwritev(fid_ep* endpoint, const fi_ioc* operands, void** /*descriptors*/, std::size_t count, fi_ioc* results,
                   void** /*result_descriptors*/, std::size_t result_count, fi_addr_t to, std::uint64_t address,
                   std::uint64_t key, fi_datatype datatype, fi_op action, void* context) {
  return access(endpoint, {to, address, key, datatype, action, context}, {operands, count},
                {.message = {}, .kind = AtomicKind::fetch, .comparands = {}, .results = {results, result_count}},
                own_flags(endpoint));
}

ssize_t readwritemsg(fid_ep* endpoint, const fi_msg_atomic* message, fi_ioc* results, void** /*result_descriptors*/,
                     std::size_t result_count, std::uint64_t flags) {
  return access(endpoint,
                {.message = *message, .kind = AtomicKind::fetch, .comparands = {}, .results = {results, result_count}},
                flags);
}

ssize_t compwrite(fid_ep* endpoint, const void* buffer, std::size_t count, void* /*descriptor*/, const void* comparand,
                  void* /*comparand_descriptor*/, void* result, void* /*result_descriptor*/, fi_addr_t to,
                  std::uint64_t address, std::uint64_t key, fi_datatype datatype, fi_op action, void* context) {
  const fi_ioc operand = part(buffer, count);
  const fi_ioc compared = part(comparand, count);
  const fi_ioc before = part(result, count);
  return access(endpoint, {to, address, key, datatype, action, context}, {&operand, 1},
                {.message = {}, .kind = AtomicKind::compare, .comparands = {&compared, 1}, .results = {&before, 1}},
                own_flags(endpoint));
}

ssize_t compwritev(fid_ep* endpoint, const fi_ioc* operands, void** /*descriptors*/, std::size_t count,
                   const fi_ioc* comparands, void** /*comparand_descriptors*/, std::size_t comparand_count,
                   fi_ioc* results, void** /*result_descriptors*/, std::size_t result_count, fi_addr_t to,
                   std::uint64_t address, std::uint64_t key, fi_datatype datatype, fi_op action, void* context) {
  return access(endpoint, {to, address, key, datatype, action, context}, {operands, count},
                {.message = {},
                 .kind = AtomicKind::compare,
                 .comparands = {comparands, comparand_count},
                 .results = {results, result_count}},
                own_flags(endpoint));
}

ssize_t compwritemsg(fid_ep* endpoint, const fi_msg_atomic* message, const fi_ioc* comparands,
                     void** /*comparand_descriptors*/, std::size_t comparand_count, fi_ioc* results,
                     void** /*result_descriptors*/, std::size_t result_count, std::uint64_t flags) {
  return access(endpoint,
                {.message = *message,
                 .kind = AtomicKind::compare,
                 .comparands = {comparands, comparand_count},
                 .results = {results, result_count}},
                flags);
}

int valid(fi_datatype datatype, fi_op action, AtomicKind kind, std::size_t* count) {
  if (!is_atomic(datatype, action, kind)) return -FI_EOPNOTSUPP;
  *count = kMostAtomicBytes / bytes_of_datatype(datatype);
  return 0;
}

int writevalid(fid_ep* /*endpoint*/, fi_datatype datatype, fi_op action, std::size_t* count) {
  return valid(datatype, action, AtomicKind::base, count);
}

int readwritevalid(fid_ep* /*endpoint*/, fi_datatype datatype, fi_op action, std::size_t* count) {
  return valid(datatype, action, AtomicKind::fetch, count);
}

int compwritevalid(fid_ep* /*endpoint*/, fi_datatype datatype, fi_op action, std::size_t* count) {
  return valid(datatype, action, AtomicKind::compare, count);
}

}  // namespace

int query_atomic(fid_domain* /*domain*/, fi_datatype datatype, fi_op action, fi_atomic_attr* attributes,
                 std::uint64_t flags) {
  constexpr std::uint64_t kKinds = FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC;
  if ((flags & ~kKinds) != 0) return (flags & FI_TAGGED) != 0 ? -FI_EOPNOTSUPP : -FI_EBADFLAGS;
  if (flags == kKinds) return -FI_EBADFLAGS;
  const AtomicKind kind = flags == 0                 ? AtomicKind::base
                          : flags == FI_FETCH_ATOMIC ? AtomicKind::fetch
                                                     : AtomicKind::compare;
  attributes->size = bytes_of_datatype(datatype);
  return valid(datatype, action, kind, &attributes->count);
}

fi_ops_atomic atomic_calls{
    sizeof(fi_ops_atomic), write,     writev,     writemsg,     inject,     readwrite,      readwritev,
    readwritemsg,          compwrite, compwritev, compwritemsg, writevalid, readwritevalid, compwritevalid};

}  // namespace wherry::mpi
