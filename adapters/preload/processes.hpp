// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry::preload {

/// In the child of a fork, before anything else, and while it has an AllShared.
void repair_after_fork() noexcept;

}  // namespace wherry::preload
