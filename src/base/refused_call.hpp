// SPDX-License-Identifier: Apache-2.0
// What to do about a system call that the kernel refused.
#pragma once

#include <string>
#include <string_view>

namespace wherry {

/// The advice for an Error with the errno value `error`, which `call` failed with: one that makes a descriptor or takes
/// memory of the kernel's, such as "eventfd". Never empty.
std::string advice_on(int error, std::string_view call);

}  // namespace wherry
