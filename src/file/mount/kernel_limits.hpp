// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace wherry::file::mount {

/// Raises the kernel's limits of a mount: of read-ahead (128 KiB), and of the pages that mappings have changed (1 % of
/// the machine's limit). Only root may. Where that is not permitted, the limits stay as they are.
/// @param device  of the mount, after FUSE_INIT, which sets the read-ahead, too
void raise_kernel_limits(dev_t device);

}  // namespace wherry::file::mount
