// SPDX-License-Identifier: Apache-2.0
#pragma once

// The protocol's version that all sources here are written for.
#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>

namespace wherry::file::mount {

/// What the kernel may ask of a FileSystem, which is the session's user data.
const fuse_lowlevel_ops& operations();

}  // namespace wherry::file::mount
