// SPDX-License-Identifier: Apache-2.0
// wherry.h: moving data over a stream.
#include <cerrno>
#include <span>

#include <wherry/wherry.h>

#include "capi/boundary.hpp"

namespace {

using wherry::capi::bytes_at;
using wherry::capi::close_within;
using wherry::capi::copy_text;
using wherry::capi::destroy;
using wherry::capi::error_of;
using wherry::capi::good;
using wherry::capi::list_of;
using wherry::capi::peer_of;
using wherry::capi::set_up;
using wherry::capi::timeout_of;
using wherry::capi::value_of;

/// Returns a closed stream for a zero handle, so that every call on it fails with EBADF.
wherry::Stream& of(wherry_stream handle) {
  static wherry::Stream none;
  return handle.impl == nullptr ? none : *static_cast<wherry::Stream*>(handle.impl);
}

/// Stores the memory that a call found, and returns its size, or -EBADF if the stream is closed.
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
  if (!good(bytes, size)) return -EINVAL;
  return value_of(of(stream).send(bytes_at(bytes, size), timeout_of(timeout_ns)));
}

int64_t wherry_sendv(wherry_stream stream, const struct iovec* buffers, int count, int64_t timeout_ns) {
  if (!good(buffers, count)) return -EINVAL;
  return value_of(of(stream).send(list_of(buffers, count), timeout_of(timeout_ns)));
}

int64_t wherry_receive(wherry_stream stream, void* buffer, size_t size, int64_t timeout_ns) {
  if (!good(buffer, size)) return -EINVAL;
  return value_of(of(stream).receive(bytes_at(buffer, size), timeout_of(timeout_ns)));
}

int64_t wherry_receivev(wherry_stream stream, const struct iovec* buffers, int count, int64_t timeout_ns) {
  if (!good(buffers, count)) return -EINVAL;
  return value_of(of(stream).receive(list_of(buffers, count), timeout_of(timeout_ns)));
}

int64_t wherry_receive_all(wherry_stream stream, void* buffer, size_t size, int64_t timeout_ns) {
  if (!good(buffer, size)) return -EINVAL;
  return value_of(of(stream).receive_all(bytes_at(buffer, size), timeout_of(timeout_ns)));
}

int64_t wherry_try_send(wherry_stream stream, const void* bytes, size_t size) {
  if (!good(bytes, size)) return -EINVAL;
  return value_of(of(stream).try_send(bytes_at(bytes, size)));
}

int64_t wherry_try_receive(wherry_stream stream, void* buffer, size_t size) {
  if (!good(buffer, size)) return -EINVAL;
  return value_of(of(stream).try_receive(bytes_at(buffer, size)));
}

int64_t wherry_try_sendv(wherry_stream stream, const struct iovec* buffers, int count) {
  if (!good(buffers, count)) return -EINVAL;
  return value_of(of(stream).try_send(list_of(buffers, count)));
}

int64_t wherry_try_receivev(wherry_stream stream, const struct iovec* buffers, int count) {
  if (!good(buffers, count)) return -EINVAL;
  return value_of(of(stream).try_receive(list_of(buffers, count)));
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

int64_t wherry_try_readable(wherry_stream stream) { return value_of(of(stream).try_readable()); }

int wherry_receive_descriptor(wherry_stream stream) {
  return descriptor_or_error(of(stream), &wherry::Stream::receive_descriptor);
}

int wherry_send_descriptor(wherry_stream stream) {
  return descriptor_or_error(of(stream), &wherry::Stream::send_descriptor);
}

int wherry_receive_event_descriptor(wherry_stream stream) {
  return descriptor_or_error(of(stream), &wherry::Stream::receive_event_descriptor);
}

int wherry_send_event_descriptor(wherry_stream stream) {
  return descriptor_or_error(of(stream), &wherry::Stream::send_event_descriptor);
}

int wherry_raise_send_descriptor(wherry_stream stream) {
  if (!of(stream).is_open()) return -EBADF;
  of(stream).raise_send_descriptor();
  return 0;
}

int wherry_finish_sending(wherry_stream stream) { return static_cast<int>(value_of(of(stream).finish_sending())); }

void wherry_stream_close(wherry_stream stream) { destroy(static_cast<wherry::Stream*>(stream.impl)); }

int wherry_stream_close_within(wherry_stream stream, int64_t timeout_ns) {
  return close_within(static_cast<wherry::Stream*>(stream.impl), timeout_ns);
}

int wherry_cancel(wherry_stream stream) {
  if (!of(stream).is_open()) return -EBADF;
  of(stream).cancel();
  return 0;
}

int wherry_get_peer(wherry_stream stream, struct wherry_peer* peer) {
  if (peer == nullptr) return -EINVAL;
  if (!of(stream).is_open()) return -EBADF;
  *peer = peer_of(of(stream).peer());
  return 0;
}

int wherry_stream_address(wherry_stream stream, char* text, size_t size) {
  if (!good(text, size)) return -EINVAL;
  if (!of(stream).is_open()) return -EBADF;
  return set_up([&] { return copy_text(of(stream).local().to_string(), text, size); });
}

int wherry_peer_host(wherry_stream stream, char* text, size_t size) {
  if (!good(text, size)) return -EINVAL;
  if (!of(stream).is_open()) return -EBADF;
  return set_up([&] { return copy_text(of(stream).peer().host, text, size); });
}

int wherry_get_capacities(wherry_stream stream, struct wherry_capacities* capacities) {
  if (capacities == nullptr) return -EINVAL;
  if (!of(stream).is_open()) return -EBADF;
  *capacities = {.send = of(stream).send_capacity(), .receive = of(stream).receive_capacity()};
  return 0;
}

int wherry_limit_unread(wherry_stream stream, size_t bytes) { return error_of(of(stream).limit_unread(bytes)); }

int wherry_get_counters(wherry_stream stream, struct wherry_counters* counters) {
  if (counters == nullptr) return -EINVAL;
  if (!of(stream).is_open()) return -EBADF;
  const wherry::StreamCounters counted = of(stream).counters();
  *counters = {.bytes_sent = counted.bytes_sent,
               .bytes_received = counted.bytes_received,
               .bytes_sent_split = counted.bytes_sent_split,
               .bytes_received_split = counted.bytes_received_split,
               .sends = counted.sends,
               .receives = counted.receives,
               .send_sleeps = counted.send_sleeps,
               .receive_sleeps = counted.receive_sleeps,
               .wakes = counted.wakes,
               .reserved = {}};
  return 0;
}
