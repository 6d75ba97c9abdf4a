// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// Names one run of a kernel; zeros: not known.
using BootId = std::array<std::uint8_t, sizeof layout::FileHello::boot>;

/// Of this machine's kernel.
BootId own_boot_id();
BootId boot_id_of(const layout::FileHello& hello);

}  // namespace wherry::file
