// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "file/mount/operations.hpp"
#include "file/mount/passthrough.hpp"

namespace wherry::file::mount {

/// Reads requests from the kernel's device and writes answers to it, for features of the kernel that libfuse 3.14 does
/// not know. The first answer enables two of them:
/// - The kernel removes set-user-ID and set-group-ID bits when a file is changed (FUSE_HANDLE_KILLPRIV_V2, Linux 5.11).
///   Otherwise it would ask for an extended attribute before each write.
/// - Passthrough (Linux 6.9); starts that of the session's FileSystem.
const fuse_custom_io& device_io();

/// Whether the kernel sends requests that a daemon has read and not answered to the next daemon (FUSE_NOTIFY_RESEND,
/// Linux 6.9). Valid after the first request.
bool has_resend();
/// Repeats the agreement of an earlier daemon with the kernel. Returns false if libfuse rejects the request.
bool agree_again(fuse_session* session, std::string request);
/// Asks the kernel to send unanswered requests again. Call it before this process reads. Returns 0 or an errno value.
int ask_to_resend(int device);

/// While it lives, an answer to an open that this thread sends names the file by which the kernel moves the data.
class OpenAnswer {
 public:
  /// @param backing  null: none
  explicit OpenAnswer(const Passthrough::Backing* backing);
  OpenAnswer(const OpenAnswer&) = delete;
  OpenAnswer& operator=(const OpenAnswer&) = delete;
  ~OpenAnswer();
};

}  // namespace wherry::file::mount
