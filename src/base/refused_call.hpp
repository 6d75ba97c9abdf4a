// SPDX-License-Identifier: Apache-2.0
// Advice for a system call that the kernel refused.
#pragma once

#include <string>
#include <string_view>

namespace wherry {

/// Returns the advice for an Error: `call`, such as "eventfd", failed with the errno value `error`. For calls that make
/// a descriptor or take kernel memory. Never empty.
std::string advice_on(int error, std::string_view call);

}  // namespace wherry
