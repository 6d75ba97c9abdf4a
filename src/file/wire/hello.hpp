// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "base/machine.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

inline BootId boot_id_of(const layout::FileHello& hello) {
  static_assert(sizeof(BootId) == sizeof hello.boot);
  BootId boot{};
  std::ranges::copy(hello.boot, boot.begin());
  return boot;
}

}  // namespace wherry::file
