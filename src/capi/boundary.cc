// SPDX-License-Identifier: Apache-2.0
#include "capi/boundary.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include <wherry/wherry.h>

namespace wherry::capi {
namespace {

/// Of fixed size: to tell that memory is short must not need any.
thread_local std::array<char, 512> last_error{};

}  // namespace

int failed(int error, const char* text) noexcept {
  const std::size_t length = std::min(std::strlen(text), last_error.size() - 1);
  std::memcpy(last_error.data(), text, length);
  last_error[length] = '\0';
  return -error;
}

int failed(const std::exception& error) noexcept {
  if (const auto* system = dynamic_cast<const std::system_error*>(&error)) {
    const int code = system->code().value();
    return failed(code > 0 ? code : EIO, system->what());
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return failed(ENOMEM, "out of memory");
  return failed(EIO, error.what());
}

std::int64_t value_of(const Result& result) noexcept {
  if (result.bytes != 0) return static_cast<std::int64_t>(result.bytes);
  if (result.failed()) return -result.error;
  return result.would_block() ? -EAGAIN : 0;
}

}  // namespace wherry::capi

const char* wherry_last_error(void) { return wherry::capi::last_error.data(); }
const char* wherry_version(void) { return WHERRY_VERSION; }
