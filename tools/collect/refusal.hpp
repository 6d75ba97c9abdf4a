// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <system_error>

namespace wherry::tools {

/// One path cannot be stored; the session continues. `what()` is the reason and the advice.
class Refusal : public std::runtime_error {
 public:
  /// @param error  an errno value
  /// @param text   the reason; empty: the system's text for the error
  explicit Refusal(int error, const std::string& text = {})
      : std::runtime_error(text.empty() ? std::system_category().message(error) : text), error_(error) {}

  [[nodiscard]] int error() const { return error_; }

 private:
  int error_;
};

}  // namespace wherry::tools
