// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string>

#include <wherry/error.hpp>

#include "base/child_process.hpp"

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

/// The text of the error that `call` ends with in a process of its own: what it does to itself ends with it.
inline std::string text_elsewhere(const std::function<void()>& call) {
  const SharedValue<std::array<char, 1000>> text;
  Child child([&] {
    const std::string said = text_of(call);
    std::memcpy(text->data(), said.data(), std::min(said.size(), text->size() - 1));
    return true;
  });
  if (child.wait() != 0) return "the process died";
  return text->data();
}

}  // namespace wherry::fault
