// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/file/program/private_mounts.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

namespace wherry::bench::file {

void keep_mounts_private() {
  const auto check = [](bool ok) {
    if (!ok) throw std::system_error(errno, std::system_category(), "a mount namespace of its own");
  };
  if (::unshare(CLONE_NEWNS) != 0) {
    const uid_t user = ::getuid();
    const gid_t group = ::getgid();
    check(::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0);
    std::ofstream("/proc/self/setgroups") << "deny";
    check((std::ofstream("/proc/self/uid_map") << fmt::format("0 {} 1", user)).flush().good());
    check((std::ofstream("/proc/self/gid_map") << fmt::format("0 {} 1", group)).flush().good());
  }
  check(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
}

}  // namespace wherry::bench::file
