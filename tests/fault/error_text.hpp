// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include <wherry/error.hpp>

namespace wherry::fault {

/// What the error says that `call` ends with.
inline std::string text_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace wherry::fault
