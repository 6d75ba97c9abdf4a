// SPDX-License-Identifier: Apache-2.0
// Where a listener is that this process does not reach: what to say to who connects in vain.
#pragma once

#include <cstdint>
#include <string>

namespace wherry::fabric::shm {

/// Who listens on that port of this job as another user, or in the network namespace of another process; as advice.
/// Empty: nobody to be seen; or asked again within a second, for it costs a look at all processes.
std::string listener_elsewhere(std::uint16_t node, std::uint16_t port);

}  // namespace wherry::fabric::shm
