// SPDX-License-Identifier: Apache-2.0
#include "capi/boundary.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include <wherry/wherry.h>
#include <wherry/error.hpp>

namespace wherry::capi {
namespace {

/// A text of fixed size, so that reporting ENOMEM needs no memory.
template <std::size_t Size>
class Text {
 public:
  void set(std::string_view text) noexcept { text_[text.copy(text_.data(), Size - 1)] = '\0'; }
  [[nodiscard]] const char* get() const noexcept { return text_.data(); }

 private:
  std::array<char, Size> text_{};
};

struct LastError {
  Text<512> text;
  Text<64> operation;
  Text<192> address;
  Text<512> advice;
};
thread_local LastError last_error;

int note(int error, std::string_view text, std::string_view operation, std::string_view address,
         std::string_view advice) noexcept {
  last_error.text.set(text);
  last_error.operation.set(operation);
  last_error.address.set(address);
  last_error.advice.set(advice);
  return -error;
}

}  // namespace

int failed(int error, const char* text) noexcept { return note(error, text, "", "", ""); }

int failed(const std::exception& error) noexcept {
  if (const auto* ours = dynamic_cast<const Error*>(&error)) {
    const int code = ours->code().value();
    return note(code > 0 ? code : EIO, ours->what(), ours->operation(), ours->address(), ours->advice());
  }
  if (const auto* system = dynamic_cast<const std::system_error*>(&error)) {
    const int code = system->code().value();
    return failed(code > 0 ? code : EIO, system->what());
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return failed(ENOMEM, "out of memory");
  return failed(EIO, error.what());
}

int copy_text(const std::string& from, char* text, std::size_t size) noexcept {
  if (size != 0) {
    const std::size_t length = std::min(from.size(), size - 1);
    std::memcpy(text, from.data(), length);
    text[length] = '\0';
  }
  return static_cast<int>(from.size());
}

std::int64_t value_of(const Result& result) noexcept {
  if (result.bytes != 0) return static_cast<std::int64_t>(result.bytes);
  if (result.failed()) return -result.error;
  return result.would_block() ? -EAGAIN : 0;
}

}  // namespace wherry::capi

const char* wherry_last_error(void) { return wherry::capi::last_error.text.get(); }
const char* wherry_last_error_operation(void) { return wherry::capi::last_error.operation.get(); }
const char* wherry_last_error_address(void) { return wherry::capi::last_error.address.get(); }
const char* wherry_last_error_advice(void) { return wherry::capi::last_error.advice.get(); }
const char* wherry_version(void) { return WHERRY_VERSION; }
