// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/read/root_errors.hpp"

#include <TError.h>
#include <algorithm>
#include <mutex>
#include <stdexcept>

namespace wherry::merge {

namespace {
// Enough messages, even if every branch of a file has a different fault.
constexpr std::size_t kMostMessages = 20;

thread_local RootErrors* current = nullptr;
ErrorHandlerFunc_t previous = nullptr;
}  // namespace

void handle_root_error(int level, bool abort, const char* location, const char* message) {
  if (current == nullptr) {
    previous(level, abort, location, message);
    return;
  }
  if (level < kWarning && !abort) return;
  const std::string text = (*location == 0 ? "" : std::string(location) + ": ") + message;
  Messages& messages = current->messages_;
  if (messages.size() < kMostMessages && std::ranges::find(messages, text) == messages.end()) messages.push_back(text);
  const bool error = level >= kError;
  if (error && current->first_.empty()) current->first_ = text;
  if (error) ++current->count_;
  if (abort || (error && current->left_-- == 0)) throw std::runtime_error(text);
}

RootErrors::RootErrors(std::size_t most) : left_(most) {
  static std::once_flag installed;
  std::call_once(installed, [] { previous = ::SetErrorHandler(handle_root_error); });
  current = this;
}

RootErrors::~RootErrors() { current = nullptr; }

}  // namespace wherry::merge
