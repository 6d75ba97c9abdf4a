// SPDX-License-Identifier: Apache-2.0
// Looks for a listener that this process cannot reach, for the advice of a connect that is refused.
#pragma once

#include <cstdint>
#include <string>

namespace wherry::fabric::shm {

/// Advice that names the listener on that port of this job of another user, or in the network namespace of another
/// process. Empty: none is seen; or asked again within a second, for it costs a look at all processes.
std::string listener_elsewhere(std::uint16_t node, std::uint16_t port);

}  // namespace wherry::fabric::shm
