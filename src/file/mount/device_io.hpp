// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "file/mount/operations.hpp"

namespace wherry::file::mount {

/// How requests are read from the kernel's device, and answered. The first answer agrees to one thing that libfuse 3.14
/// does not know of: the file system removes set-user-ID and set-group-ID bits when a file is changed
/// (FUSE_HANDLE_KILLPRIV_V2, Linux 5.11). The kernel then does not ask for an extended attribute before each write.
const fuse_custom_io& device_io();

}  // namespace wherry::file::mount
