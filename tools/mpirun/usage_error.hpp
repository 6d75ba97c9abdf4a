// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace wherry::tools {

/// The command line is wrong, and no process was started. The text says what to write instead.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;

  static constexpr int kStatus = 2;  ///< the exit status of the program
};

}  // namespace wherry::tools
