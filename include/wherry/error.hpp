// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <wherry/require_cxx20.hpp>

#include <string>
#include <system_error>

namespace wherry {

/// The exception of all calls that set something up (parse, listen, connect, accept, configure). `what()` reads
/// "OPERATION ADDRESS: reason; ADVICE". `code()` is an errno value in the system category.
class Error : public std::system_error {
 public:
  /// @param error      an errno value
  /// @param operation  what failed, such as "connect"
  /// @param address    the object of the operation, such as "wherry://0:2000"; may be empty
  /// @param advice     what the user can do; may be empty
  Error(int error, std::string operation, std::string address, std::string advice);

  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }
  [[nodiscard]] const std::string& operation() const noexcept { return operation_; }
  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  [[nodiscard]] const std::string& advice() const noexcept { return advice_; }

 private:
  std::string operation_;
  std::string address_;
  std::string advice_;
  std::string text_;
};

}  // namespace wherry
