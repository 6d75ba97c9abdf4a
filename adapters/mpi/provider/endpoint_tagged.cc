// SPDX-License-Identifier: Apache-2.0
// fi_tagged(3).
#include "endpoint.hpp"
#include "objects.hpp"

namespace wherry::mpi {
namespace {

Endpoint& endpoint_of(fid_ep* endpoint) { return *static_cast<Endpoint*>(endpoint); }

SendRequest request_of(Buffers buffers, std::uint64_t tag) {
  SendRequest request;
  request.buffers = buffers;
  request.tag = tag;
  request.tagged = true;
  return request;
}

ReceiveRequest request_of(const Buffers& buffers, fi_addr_t source, std::uint64_t tag, std::uint64_t ignore,
                          void* context) {
  ReceiveRequest request;
  request.buffers = buffers;
  request.source = source;
  request.tag = tag;
  request.ignore = ignore;
  request.context = context;
  request.tagged = true;
  return request;
}

ssize_t recvmsg(fid_ep* endpoint, const fi_msg_tagged* message, std::uint64_t flags) {
  if (message->iov_count > kMostBuffers) return -FI_EINVAL;
  ReceiveRequest request = request_of(Buffers(std::span(message->msg_iov, message->iov_count)), message->addr,
                                      message->tag, message->ignore, message->context);
  return endpoint_of(endpoint).receive(request, flags);
}

ssize_t recv(fid_ep* endpoint, void* buffer, std::size_t length, void* /*descriptor*/, fi_addr_t source,
             std::uint64_t tag, std::uint64_t ignore, void* context) {
  ReceiveRequest request = request_of(Buffers(buffer, length), source, tag, ignore, context);
  return endpoint_of(endpoint).receive(request, endpoint_of(endpoint).receive_flags() & ~std::uint64_t{FI_MULTI_RECV});
}

ssize_t recvv(fid_ep* endpoint, const iovec* ranges, void** descriptors, std::size_t count, fi_addr_t source,
              std::uint64_t tag, std::uint64_t ignore, void* context) {
  const fi_msg_tagged message{ranges, descriptors, count, source, tag, ignore, context, 0};
  return recvmsg(endpoint, &message, endpoint_of(endpoint).receive_flags() & ~std::uint64_t{FI_MULTI_RECV});
}

ssize_t sendmsg(fid_ep* endpoint, const fi_msg_tagged* message, std::uint64_t flags) {
  if (message->iov_count > kMostBuffers) return -FI_EINVAL;
  SendRequest request = request_of(Buffers(std::span(message->msg_iov, message->iov_count)), message->tag);
  request.context = message->context;
  request.has_data = (flags & FI_REMOTE_CQ_DATA) != 0;
  request.data = message->data;
  return endpoint_of(endpoint).send(message->addr, request, flags);
}

ssize_t sendv(fid_ep* endpoint, const iovec* ranges, void** descriptors, std::size_t count, fi_addr_t to,
              std::uint64_t tag, void* context) {
  const fi_msg_tagged message{ranges, descriptors, count, to, tag, 0, context, 0};
  return sendmsg(endpoint, &message, endpoint_of(endpoint).send_flags() & ~std::uint64_t{FI_REMOTE_CQ_DATA});
}

ssize_t send(fid_ep* endpoint, const void* buffer, std::size_t length, void* /*descriptor*/, fi_addr_t to,
             std::uint64_t tag, void* context) {
  SendRequest request = request_of(Buffers(buffer, length), tag);
  request.context = context;
  return endpoint_of(endpoint).send(to, request, endpoint_of(endpoint).send_flags());
}

ssize_t senddata(fid_ep* endpoint, const void* buffer, std::size_t length, void* /*descriptor*/, std::uint64_t data,
                 fi_addr_t to, std::uint64_t tag, void* context) {
  SendRequest request = request_of(Buffers(buffer, length), tag);
  request.context = context;
  request.has_data = true;
  request.data = data;
  return endpoint_of(endpoint).send(to, request, endpoint_of(endpoint).send_flags());
}

// An injected message has no completion.
ssize_t inject(fid_ep* endpoint, const void* buffer, std::size_t length, fi_addr_t to, std::uint64_t tag) {
  SendRequest request = request_of(Buffers(buffer, length), tag);
  request.wanted = false;
  return endpoint_of(endpoint).send(to, request, FI_INJECT);
}

ssize_t injectdata(fid_ep* endpoint, const void* buffer, std::size_t length, std::uint64_t data, fi_addr_t to,
                   std::uint64_t tag) {
  SendRequest request = request_of(Buffers(buffer, length), tag);
  request.wanted = false;
  request.has_data = true;
  request.data = data;
  return endpoint_of(endpoint).send(to, request, FI_INJECT);
}

}  // namespace

fi_ops_tagged tagged_calls{
    sizeof(fi_ops_tagged), recv, recvv, recvmsg, send, sendv, sendmsg, inject, senddata, injectdata};

}  // namespace wherry::mpi
