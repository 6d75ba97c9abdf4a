// SPDX-License-Identifier: Apache-2.0
//
// Exit statuses of a program that starts another one, the same as those of env, nohup and timeout.
#pragma once

#include <cerrno>

namespace wherry::tools {

/// Something failed before the program could be started.
inline constexpr int kStartFailed = 125;

/// 127 if there is no such program, 126 if it cannot be executed.
inline int status_of_exec(int error) { return error == ENOENT || error == ENOTDIR ? 127 : 126; }

}  // namespace wherry::tools
