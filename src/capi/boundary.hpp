// SPDX-License-Identifier: Apache-2.0
// The boundary between C and C++: no exception crosses it. Errors become negative errno values.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <system_error>

#include <wherry/wherry.h>
#include <wherry/address.hpp>
#include <wherry/result.hpp>
#include <wherry/stream.hpp>

#include "base/not_cancelled.hpp"

namespace wherry::capi {

/// Deletes the object of a handle, with cancellation of the thread disabled.
template <class Handle>
void destroy(Handle* handle) noexcept {
  const NotCancelled here;
  delete handle;
}

/// Stores the text of a failure for wherry_last_error(). Returns the negative errno value.
int failed(const std::exception& error) noexcept;
int failed(int error, const char* text) noexcept;

inline int no_handle() noexcept { return failed(EBADF, "the handle is zero: nothing was opened, or it is closed"); }
inline int missing_argument() noexcept { return failed(EINVAL, "an argument or the pointer for the result is NULL"); }
inline int bad_options() noexcept {
  return failed(
      EINVAL, "the options have unknown values, or reserved fields that are not zero; zero them before you set fields");
}

/// Runs a call of the setup phase, with cancellation of the thread disabled. An exception becomes a negative errno
/// value.
template <class Call>
int set_up(Call&& call) noexcept {
  const NotCancelled here;
  try {
    return call();
  } catch (const std::exception& error) {
    return failed(error);
  }
}

/// Returns the timeout of a call without a configured one. Every negative value means no limit.
inline Timeout timeout_of(std::int64_t nanoseconds) {
  if (nanoseconds < 0) return {};
  return std::chrono::nanoseconds(nanoseconds);
}

/// Returns the timeout of a call that has a configured one. An empty Timeout selects the configured one.
inline Timeout configurable_timeout_of(std::int64_t nanoseconds) {
  if (nanoseconds == WHERRY_TIMEOUT_DEFAULT) return {};
  return nanoseconds < 0 ? std::chrono::nanoseconds::max() : std::chrono::nanoseconds(nanoseconds);
}

/// Returns the bytes moved; 0: the end of the stream. If none were moved, a negative errno value.
std::int64_t value_of(const Result& result) noexcept;

/// The same for messages, which may be empty: 0 is an empty message, and there is no end.
inline std::int64_t message_value(const Result& result) noexcept {
  if (result.failed()) return -result.error;
  return result.would_block() ? -EAGAIN : static_cast<std::int64_t>(result.bytes);
}

/// Returns 0 or a negative errno value, for a call that moves no bytes.
inline int error_of(const Result& result) noexcept { return result.failed() ? -result.error : 0; }

/// Closes and deletes the Stream or FramedStream of a handle.
template <class Closable>
int close_within(Closable* place, std::int64_t timeout_ns) noexcept {
  if (place == nullptr) return no_handle();
  const Result closed = place->close(timeout_of(timeout_ns));
  destroy(place);
  return error_of(closed);
}

/// As error_of, for a call that may return -EAGAIN with nothing done.
inline int done_or_error(const Result& result) noexcept { return result.would_block() ? -EAGAIN : error_of(result); }

/// Returns 1 for a message, 0 for the end, or a negative errno value.
inline int message_or_end(const Result& result) noexcept { return result.ok() ? 1 : done_or_error(result); }

/// Copies a text and its terminating zero, truncated to `size`. Returns the text's length, as snprintf does.
int copy_text(const std::string& from, char* text, std::size_t size) noexcept;

inline bool good(const void* bytes, std::size_t size) { return bytes != nullptr || size == 0; }
inline bool good(const iovec* buffers, int count) { return count == 0 || (count > 0 && buffers != nullptr); }

inline std::span<const std::byte> bytes_at(const void* start, std::size_t size) {
  return {static_cast<const std::byte*>(start), size};
}
inline std::span<std::byte> bytes_at(void* start, std::size_t size) { return {static_cast<std::byte*>(start), size}; }
inline std::span<const iovec> list_of(const iovec* buffers, int count) {
  return {buffers, static_cast<std::size_t>(count)};
}

inline wherry_peer peer_of(const Peer& known) {
  return {.pid = known.pid,
          .uid = known.uid,
          .gid = known.gid,
          .node = known.address.node.value_or(0),
          .port = known.address.port.value_or(0),
          .reserved = 0};
}

}  // namespace wherry::capi
