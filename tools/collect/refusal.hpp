// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <system_error>

namespace wherry::tools {

/// One thing cannot be stored; the session goes on. `what()` is the reason and what to do about it.
class Refusal : public std::runtime_error {
 public:
  /// @param error  an errno value
  /// @param text   what it means here; empty: the system's words for the error
  explicit Refusal(int error, const std::string& text = {})
      : std::runtime_error(text.empty() ? std::system_category().message(error) : text), error_(error) {}

  [[nodiscard]] int error() const { return error_; }

 private:
  int error_;
};

}  // namespace wherry::tools
