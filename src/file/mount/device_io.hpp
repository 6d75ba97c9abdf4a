// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "file/mount/operations.hpp"
#include "file/mount/passthrough.hpp"

namespace wherry::file::mount {

/// How requests are read from the kernel's device, and answered, where libfuse 3.14 does not know of what the kernel
/// offers. The first answer agrees
/// - to remove set-user-ID and set-group-ID bits when a file is changed (FUSE_HANDLE_KILLPRIV_V2, Linux 5.11): the
/// kernel
///   then does not ask for an extended attribute before each write;
/// - to passthrough (Linux 6.9), and starts that of the session's FileSystem.
const fuse_custom_io& device_io();

/// While it lives, the answer to an open that this thread sends names the file by which the kernel moves the data.
class OpenAnswer {
 public:
  /// @param backing  null: none
  explicit OpenAnswer(const Passthrough::Backing* backing);
  OpenAnswer(const OpenAnswer&) = delete;
  OpenAnswer& operator=(const OpenAnswer&) = delete;
  ~OpenAnswer();
};

}  // namespace wherry::file::mount
