// SPDX-License-Identifier: Apache-2.0
// The boundary between C and C++: no exception crosses it, errors become negative errno values.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <system_error>

#include <wherry/wherry.h>
#include <wherry/result.hpp>
#include <wherry/stream.hpp>

#include "base/not_cancelled.hpp"

namespace wherry::capi {

/// Gives a handle back.
template <class Handle>
void destroy(Handle* handle) noexcept {
  const NotCancelled here;
  delete handle;
}

/// Notes the text of a failure for wherry_last_error(). Returns the negative errno value.
int failed(const std::exception& error) noexcept;
int failed(int error, const char* text) noexcept;

/// Runs a call that sets something up: what it throws becomes its result, and the cancellation of its thread waits.
template <class Call>
int set_up(Call&& call) noexcept {
  const NotCancelled here;
  try {
    return call();
  } catch (const std::exception& error) {
    return failed(error);
  }
}

/// The timeout of a call that has no configured one: every negative value means without limit.
inline Timeout timeout_of(std::int64_t nanoseconds) {
  if (nanoseconds < 0) return {};
  return std::chrono::nanoseconds(nanoseconds);
}

/// The timeout of a call that has a configured one: an empty Timeout means that one.
inline Timeout configurable_timeout_of(std::int64_t nanoseconds) {
  if (nanoseconds == WHERRY_TIMEOUT_DEFAULT) return {};
  return nanoseconds < 0 ? std::chrono::nanoseconds::max() : std::chrono::nanoseconds(nanoseconds);
}

/// Bytes, 0 at the end, or a negative errno value where nothing was moved.
std::int64_t value_of(const Result& result) noexcept;

/// 0, or a negative errno value: of a call that moves no bytes.
inline int error_of(const Result& result) noexcept { return result.failed() ? -result.error : 0; }

}  // namespace wherry::capi
