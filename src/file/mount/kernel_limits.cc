// SPDX-License-Identifier: Apache-2.0
#include "file/mount/kernel_limits.hpp"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include "base/log.hpp"
#include "base/unique_fd.hpp"

namespace wherry::file::mount {
namespace {

/// Faster than the kernel's 128 on one machine, and for servers that are far away. 512 was half as fast on one machine:
/// the daemon's copies leave the CPU caches.
constexpr std::string_view kReadAheadKiB = "256";
constexpr std::string_view kMostDirtyPercent = "10";

void set(const std::string& name, std::string_view value) {
  const UniqueFd file(::open(name.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.valid() && ::write(file.get(), value.data(), value.size()) >= 0) return;
  log::write(log::Level::debug, "wherry mount: " + name + ": " + std::system_category().message(errno));
}

}  // namespace

void raise_kernel_limits(dev_t device) {
  const std::string limits =
      "/sys/class/bdi/" + std::to_string(major(device)) + ":" + std::to_string(minor(device)) + "/";
  set(limits + "read_ahead_kb", kReadAheadKiB);
  set(limits + "max_ratio", kMostDirtyPercent);
}

}  // namespace wherry::file::mount
