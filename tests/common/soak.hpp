// SPDX-License-Identifier: Apache-2.0
// Tests that look for something rare look for seconds, and as long as it takes in `make soak`, which sets WHERRY_SOAK.
#pragma once

#include <cstdlib>

namespace wherry {

inline bool soaking() { return std::getenv("WHERRY_SOAK") != nullptr; }

}  // namespace wherry
