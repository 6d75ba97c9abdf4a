// SPDX-License-Identifier: Apache-2.0
#pragma once

// The version of libfuse's API that all sources here use.
#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>

namespace wherry::file::mount {

/// The kernel's operations on a FileSystem, which is the session's user data.
const fuse_lowlevel_ops& operations();

}  // namespace wherry::file::mount
