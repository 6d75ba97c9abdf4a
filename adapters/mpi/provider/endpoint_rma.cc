// SPDX-License-Identifier: Apache-2.0
// fi_rma(3).
#include <rdma/fi_rma.h>

#include "endpoint.hpp"
#include "objects.hpp"

namespace wherry::mpi {
namespace {

Endpoint& endpoint_of(fid_ep* endpoint) { return *static_cast<Endpoint*>(endpoint); }

RemoteRequest request_of(Operation operation, const Buffers& local, void* context) {
  RemoteRequest request;
  request.operation = operation;
  (operation == Operation::read ? request.result : request.source) = local;
  request.context = context;
  return request;
}

void name(RemoteRequest& request, std::uint64_t address, std::uint64_t bytes, std::uint64_t key) {
  request.ranges[0] = {address, bytes, key};
  request.range_count = 1;
}

// For the calls with one remote range, which is as long as the local ones.
RemoteRequest request_of(Operation operation, const Buffers& local, std::uint64_t address, std::uint64_t key,
                         void* context) {
  RemoteRequest request = request_of(operation, local, context);
  name(request, address, local.bytes(), key);
  return request;
}

ssize_t transfer(fid_ep* endpoint, Operation operation, const fi_msg_rma* message, std::uint64_t flags) {
  if (message->iov_count > kMostBuffers || message->rma_iov_count > kMostRemoteRanges) return -FI_EINVAL;
  RemoteRequest request =
      request_of(operation, Buffers(std::span(message->msg_iov, message->iov_count)), message->context);
  for (const fi_rma_iov& range : std::span(message->rma_iov, message->rma_iov_count)) {
    request.ranges[request.range_count++] = {range.addr, range.len, range.key};
  }
  request.has_data = operation == Operation::write && (flags & FI_REMOTE_CQ_DATA) != 0;
  request.data = message->data;
  return endpoint_of(endpoint).access(message->addr, request, flags);
}

// For the calls that take no flags.
ssize_t access(fid_ep* endpoint, fi_addr_t to, RemoteRequest request) {
  return endpoint_of(endpoint).access(to, request, endpoint_of(endpoint).send_flags());
}

ssize_t read(fid_ep* endpoint, void* buffer, std::size_t length, void* /*descriptor*/, fi_addr_t from,
             std::uint64_t address, std::uint64_t key, void* context) {
  return access(endpoint, from, request_of(Operation::read, Buffers(buffer, length), address, key, context));
}

ssize_t readv(fid_ep* endpoint, const iovec* ranges, void** /*descriptors*/, std::size_t count, fi_addr_t from,
              std::uint64_t address, std::uint64_t key, void* context) {
  if (count > kMostBuffers) return -FI_EINVAL;
  return access(endpoint, from, request_of(Operation::read, Buffers(std::span(ranges, count)), address, key, context));
}

ssize_t readmsg(fid_ep* endpoint, const fi_msg_rma* message, std::uint64_t flags) {
  if ((flags & (FI_REMOTE_CQ_DATA | FI_INJECT)) != 0) return -FI_EBADFLAGS;
  return transfer(endpoint, Operation::read, message, flags);
}

ssize_t write(fid_ep* endpoint, const void* buffer, std::size_t length, void* /*descriptor*/, fi_addr_t to,
              std::uint64_t address, std::uint64_t key, void* context) {
  return access(endpoint, to, request_of(Operation::write, Buffers(buffer, length), address, key, context));
}

ssize_t writev(fid_ep* endpoint, const iovec* ranges, void** /*descriptors*/, std::size_t count, fi_addr_t to,
               std::uint64_t address, std::uint64_t key, void* context) {
  if (count > kMostBuffers) return -FI_EINVAL;
  return access(endpoint, to, request_of(Operation::write, Buffers(std::span(ranges, count)), address, key, context));
}

ssize_t writemsg(fid_ep* endpoint, const fi_msg_rma* message, std::uint64_t flags) {
  return transfer(endpoint, Operation::write, message, flags);
}

ssize_t writedata(fid_ep* endpoint, const void* buffer, std::size_t length, void* /*descriptor*/, std::uint64_t data,
                  fi_addr_t to, std::uint64_t address, std::uint64_t key, void* context) {
  RemoteRequest request = request_of(Operation::write, Buffers(buffer, length), address, key, context);
  request.has_data = true;
  request.data = data;
  return access(endpoint, to, request);
}

// An injected write is counted, but has no completion unless it fails.
ssize_t injected(fid_ep* endpoint, fi_addr_t to, RemoteRequest request) {
  request.wanted = false;
  return endpoint_of(endpoint).access(to, request, FI_INJECT);
}

ssize_t inject(fid_ep* endpoint, const void* buffer, std::size_t length, fi_addr_t to, std::uint64_t address,
               std::uint64_t key) {
  return injected(endpoint, to, request_of(Operation::write, Buffers(buffer, length), address, key, nullptr));
}

ssize_t injectdata(fid_ep* endpoint, const void* buffer, std::size_t length, std::uint64_t data, fi_addr_t to,
                   std::uint64_t address, std::uint64_t key) {
  RemoteRequest request = request_of(Operation::write, Buffers(buffer, length), address, key, nullptr);
  request.has_data = true;
  request.data = data;
  return injected(endpoint, to, request);
}

}  // namespace

fi_ops_rma rma_calls{sizeof(fi_ops_rma), read, readv, readmsg, write, writev, writemsg, inject, writedata, injectdata};

}  // namespace wherry::mpi
