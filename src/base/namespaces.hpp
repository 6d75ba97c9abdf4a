// SPDX-License-Identifier: Apache-2.0
// The kernel namespaces of the calling thread, which decide which processes it can reach.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace wherry {

/// Returns the number of the namespace of that kind ("net", "ipc", "pid", "user", "mnt"), as in `ls -l /proc/self/ns`.
/// 0: /proc cannot be read. From any thread.
std::uint64_t namespace_number(const char* kind);

/// The same for another process. 0 also if the kernel refuses access.
std::uint64_t namespace_number(const char* kind, const std::string& process);

/// Whether that namespace is the one that the system booted with. False: it is, for example, a container's. Empty:
/// unknown. From any thread.
std::optional<bool> is_initial_namespace(const char* kind);

}  // namespace wherry
