// SPDX-License-Identifier: Apache-2.0
// wherry/framed.h: whole messages over a stream.
#include <cerrno>
#include <utility>

#include <wherry/wherry.h>
#include <wherry/framed.hpp>

#include "capi/boundary.hpp"

namespace {

using wherry::FramedStream;
using wherry::Received;
using wherry::Stream;
using wherry::capi::bytes_at;
using wherry::capi::close_within;
using wherry::capi::destroy;
using wherry::capi::error_of;
using wherry::capi::good;
using wherry::capi::list_of;
using wherry::capi::message_or_end;
using wherry::capi::message_value;
using wherry::capi::missing_argument;
using wherry::capi::no_handle;
using wherry::capi::set_up;
using wherry::capi::timeout_of;

/// Returns a closed stream for a zero handle, so that every call on it fails with EBADF.
FramedStream& of(wherry_framed handle) {
  static FramedStream none;
  return handle.impl == nullptr ? none : *static_cast<FramedStream*>(handle.impl);
}

int give(const Received& received, const void** message, size_t* size) {
  *message = received.message.data();
  *size = received.message.size();
  return message_or_end(received.result);
}

}  // namespace

int wherry_framed_open(wherry_stream stream, wherry_framed* framed) {
  if (stream.impl == nullptr) return no_handle();
  if (framed == nullptr) return missing_argument();
  auto* from = static_cast<Stream*>(stream.impl);
  return set_up([&] {
    framed->impl = new FramedStream(std::move(*from));
    delete from;
    return 0;
  });
}

void wherry_framed_close(wherry_framed framed) { destroy(static_cast<FramedStream*>(framed.impl)); }

int wherry_framed_close_within(wherry_framed framed, int64_t timeout_ns) {
  return close_within(static_cast<FramedStream*>(framed.impl), timeout_ns);
}

int wherry_framed_release(wherry_framed framed, wherry_stream* stream) {
  if (framed.impl == nullptr) return no_handle();
  if (stream == nullptr) return missing_argument();
  return set_up([&] {
    auto* place = new Stream();
    *place = of(framed).release();
    stream->impl = place;
    delete &of(framed);
    return 0;
  });
}

int wherry_framed_get_stream(wherry_framed framed, wherry_stream* stream) {
  if (stream == nullptr) return -EINVAL;
  if (!of(framed).is_open()) return -EBADF;
  stream->impl = &of(framed).stream();
  return 0;
}

int64_t wherry_framed_send(wherry_framed framed, const void* message, size_t size, int64_t timeout_ns) {
  if (!good(message, size)) return -EINVAL;
  return message_value(of(framed).send(bytes_at(message, size), timeout_of(timeout_ns)));
}

int64_t wherry_framed_sendv(wherry_framed framed, const struct iovec* pieces, int count, int64_t timeout_ns) {
  if (!good(pieces, count)) return -EINVAL;
  return message_value(of(framed).send(list_of(pieces, count), timeout_of(timeout_ns)));
}

int64_t wherry_framed_try_send(wherry_framed framed, const void* message, size_t size) {
  if (!good(message, size)) return -EINVAL;
  return message_value(of(framed).try_send(bytes_at(message, size)));
}

int64_t wherry_framed_try_sendv(wherry_framed framed, const struct iovec* pieces, int count) {
  if (!good(pieces, count)) return -EINVAL;
  return message_value(of(framed).try_send(list_of(pieces, count)));
}

int wherry_framed_reserve(wherry_framed framed, size_t size, void** room) {
  if (room == nullptr) return -EINVAL;
  *room = nullptr;
  if (!of(framed).is_open()) return -EBADF;
  if (size > of(framed).max_send()) return -EMSGSIZE;
  *room = of(framed).reserve(size).data();
  return *room == nullptr ? -EAGAIN : 0;
}

int64_t wherry_framed_commit(wherry_framed framed, size_t size) { return message_value(of(framed).commit(size)); }

int64_t wherry_framed_wait_writable(wherry_framed framed, size_t size, int64_t timeout_ns) {
  return message_value(of(framed).wait_writable(size, timeout_of(timeout_ns)));
}

int wherry_framed_hold(wherry_framed framed) {
  if (!of(framed).is_open()) return -EBADF;
  of(framed).hold();
  return 0;
}

int wherry_framed_flush(wherry_framed framed) { return error_of(of(framed).flush()); }

int wherry_framed_receive(wherry_framed framed, const void** message, size_t* size, int64_t timeout_ns) {
  if (message == nullptr || size == nullptr) return -EINVAL;
  return give(of(framed).receive(timeout_of(timeout_ns)), message, size);
}

int wherry_framed_try_receive(wherry_framed framed, const void** message, size_t* size) {
  if (message == nullptr || size == nullptr) return -EINVAL;
  return give(of(framed).try_receive(), message, size);
}

int64_t wherry_framed_max_send(wherry_framed framed) {
  return of(framed).is_open() ? static_cast<int64_t>(of(framed).max_send()) : -EBADF;
}

int64_t wherry_framed_max_receive(wherry_framed framed) {
  return of(framed).is_open() ? static_cast<int64_t>(of(framed).max_receive()) : -EBADF;
}
