// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

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

/// Whether the kernel sends what a daemon has read and not answered to the next one (FUSE_NOTIFY_RESEND, Linux 6.9).
/// After the first request.
bool has_resend();
/// In place of an earlier daemon: agrees with the kernel on what that one has agreed on. Returns false if libfuse does
/// not take the request.
bool agree_again(fuse_session* session, std::string request);
/// Asks the kernel for what was read and not answered. Before this process reads. Returns 0 or an errno value.
int ask_to_resend(int device);

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
