// SPDX-License-Identifier: Apache-2.0
// wherry.h: moving data over a stream.
#include <cerrno>
#include <span>

#include <wherry/wherry.h>

#include "capi/boundary.hpp"

namespace {

using wherry::capi::destroy;
using wherry::capi::set_up;
using wherry::capi::timeout_of;
using wherry::capi::value_of;

/// A none handle is a stream that is closed: every call on it fails with EBADF by itself.
wherry::Stream& of(wherry_stream handle) {
  static wherry::Stream none;
  return handle.impl == nullptr ? none : *static_cast<wherry::Stream*>(handle.impl);
}

std::span<const std::byte> bytes_at(const void* start, size_t size) {
  return {static_cast<const std::byte*>(start), size};
}
std::span<std::byte> bytes_at(void* start, size_t size) { return {static_cast<std::byte*>(start), size}; }

bool good(const iovec* buffers, int count) { return count == 0 || (count > 0 && buffers != nullptr); }
std::span<const iovec> list_of(const iovec* buffers, int count) { return {buffers, static_cast<std::size_t>(count)}; }

/// What a call that shows memory found; the reason if there is none because the stream is closed.
template <class Byte>
int64_t show(wherry::Stream& stream, const wherry::BasicRegions<Byte>& found, iovec regions[2]) {
  if (!stream.is_open()) return -EBADF;
  regions[0] = {const_cast<std::byte*>(found.first.data()), found.first.size()};
  regions[1] = {const_cast<std::byte*>(found.second.data()), found.second.size()};
  return static_cast<int64_t>(found.size());
}

int descriptor_or_error(wherry::Stream& stream, int (wherry::Stream::*descriptor)()) {
  if (!stream.is_open()) return -EBADF;
  return set_up([&] { return (stream.*descriptor)(); });
}

}  // namespace

int64_t wherry_send(wherry_stream stream, const void* bytes, size_t size, int64_t timeout_ns) {
  if (bytes == nullptr && size != 0) return -EINVAL;
  return value_of(of(stream).send(bytes_at(bytes, size), timeout_of(timeout_ns)));
}

int64_t wherry_sendv(wherry_stream stream, const struct iovec* buffers, int count, int64_t timeout_ns) {
  if (!good(buffers, count)) return -EINVAL;
  return value_of(of(stream).send(list_of(buffers, count), timeout_of(timeout_ns)));
}

int64_t wherry_receive(wherry_stream stream, void* buffer, size_t size, int64_t timeout_ns) {
  if (buffer == nullptr && size != 0) return -EINVAL;
  return value_of(of(stream).receive(bytes_at(buffer, size), timeout_of(timeout_ns)));
}

int64_t wherry_receivev(wherry_stream stream, const struct iovec* buffers, int count, int64_t timeout_ns) {
  if (!good(buffers, count)) return -EINVAL;
  return value_of(of(stream).receive(list_of(buffers, count), timeout_of(timeout_ns)));
}

int64_t wherry_receive_all(wherry_stream stream, void* buffer, size_t size, int64_t timeout_ns) {
  if (buffer == nullptr && size != 0) return -EINVAL;
  return value_of(of(stream).receive_all(bytes_at(buffer, size), timeout_of(timeout_ns)));
}

int64_t wherry_try_send(wherry_stream stream, const void* bytes, size_t size) {
  if (bytes == nullptr && size != 0) return -EINVAL;
  return value_of(of(stream).try_send(bytes_at(bytes, size)));
}

int64_t wherry_try_receive(wherry_stream stream, void* buffer, size_t size) {
  if (buffer == nullptr && size != 0) return -EINVAL;
  return value_of(of(stream).try_receive(bytes_at(buffer, size)));
}

int64_t wherry_reserve(wherry_stream stream, size_t want, struct iovec regions[2]) {
  if (regions == nullptr) return -EINVAL;
  return show(of(stream), of(stream).reserve(want), regions);
}

int64_t wherry_commit(wherry_stream stream, size_t bytes) { return value_of(of(stream).commit(bytes)); }

int64_t wherry_peek(wherry_stream stream, size_t want, struct iovec regions[2]) {
  if (regions == nullptr) return -EINVAL;
  return show(of(stream), of(stream).peek(want), regions);
}

int64_t wherry_consume(wherry_stream stream, size_t bytes) { return value_of(of(stream).consume(bytes)); }

int64_t wherry_wait_readable(wherry_stream stream, int64_t timeout_ns) {
  return value_of(of(stream).wait_readable(timeout_of(timeout_ns)));
}

int64_t wherry_wait_writable(wherry_stream stream, size_t bytes, int64_t timeout_ns) {
  return value_of(of(stream).wait_writable(bytes, timeout_of(timeout_ns)));
}

int wherry_receive_descriptor(wherry_stream stream) {
  return descriptor_or_error(of(stream), &wherry::Stream::receive_descriptor);
}

int wherry_send_descriptor(wherry_stream stream) {
  return descriptor_or_error(of(stream), &wherry::Stream::send_descriptor);
}

int wherry_finish_sending(wherry_stream stream) { return static_cast<int>(value_of(of(stream).finish_sending())); }

void wherry_stream_close(wherry_stream stream) { destroy(static_cast<wherry::Stream*>(stream.impl)); }

int wherry_cancel(wherry_stream stream) {
  if (!of(stream).is_open()) return -EBADF;
  of(stream).cancel();
  return 0;
}

int wherry_get_peer(wherry_stream stream, struct wherry_peer* peer) {
  if (peer == nullptr) return -EINVAL;
  if (!of(stream).is_open()) return -EBADF;
  const wherry::Peer& known = of(stream).peer();
  *peer = {.pid = known.pid,
           .uid = known.uid,
           .gid = known.gid,
           .node = known.address.node.value_or(0),
           .port = known.address.port.value_or(0),
           .reserved = 0};
  return 0;
}

int wherry_get_capacities(wherry_stream stream, struct wherry_capacities* capacities) {
  if (capacities == nullptr) return -EINVAL;
  if (!of(stream).is_open()) return -EBADF;
  *capacities = {.send = of(stream).send_capacity(), .receive = of(stream).receive_capacity()};
  return 0;
}
