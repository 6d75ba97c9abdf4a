// SPDX-License-Identifier: Apache-2.0
// The kernel's namespaces that the calling thread is in: they decide which processes it can reach.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace wherry {

/// The number of the namespace of that kind ("net", "ipc", "pid", "user", "mnt"), as `ls -l /proc/self/ns` shows it.
/// 0: /proc does not tell. From any thread.
std::uint64_t namespace_number(const char* kind);

/// The same of another process; 0, too, where the kernel does not allow the look.
std::uint64_t namespace_number(const char* kind, const std::string& process);

/// True if that namespace is the one that the system booted with, false if it is a container's or the like. Empty:
/// unknown. From any thread.
std::optional<bool> is_initial_namespace(const char* kind);

}  // namespace wherry
