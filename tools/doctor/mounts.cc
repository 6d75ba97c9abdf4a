// SPDX-License-Identifier: Apache-2.0
//
// What `wherry mount` can do on this machine, and what a host gives to the mounts of its files.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include "base/namespaces.hpp"
#include "base/unique_fd.hpp"
#include "doctor/check.hpp"

namespace wherry::tools::doctor {
namespace {

constexpr int kSysAdmin = 21;  // CAP_SYS_ADMIN
/// The server takes a lease for writing if it lasts for longer than five times --recall-timeout, which is 5 s unless it
/// is set (src/file/server/write_delegation.cc:WriteDelegation::take).
constexpr long kTimeouts = 5;
constexpr long kRecallSeconds = 5;

bool has_sys_admin() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("CapEff:")) return (std::strtoull(line.c_str() + 7, nullptr, 16) >> kSysAdmin & 1) != 0;
  }
  return false;
}

bool mounts_as_root() { return ::geteuid() == 0 && has_sys_admin(); }

std::optional<std::filesystem::path> find_program(const char* name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::filesystem::path program = std::filesystem::path(folder.empty() ? "." : folder) / name;
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

std::optional<long> number_in(const char* file) {
  std::ifstream in(file);
  long number = 0;
  return in >> number ? std::optional(number) : std::nullopt;
}

}  // namespace

Finding check_mounting() {
  const UniqueFd device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!device.valid()) {
    const int error = errno;
    const std::string found = "/dev/fuse: " + std::system_category().message(error);
    if (error == EACCES)
      return {Verdict::warn, found, "for wherry mount, let root run chmod 666 /dev/fuse, or mount as root"};
    return {Verdict::warn, found,
            "for wherry mount, load the kernel's module fuse; in a container, --device /dev/fuse --cap-add SYS_ADMIN"};
  }
  if (mounts_as_root()) return {Verdict::ok, "/dev/fuse works, and this process may mount", ""};
  const auto helper = find_program("fusermount3");
  if (helper) return {Verdict::ok, fmt::format("/dev/fuse works, and {} mounts", helper->string()), ""};
  return {Verdict::warn, "/dev/fuse works, but this process may not mount",
          "install fuse3 (fusermount3), or mount as root with CAP_SYS_ADMIN"};
}

Finding check_passthrough() {
  utsname system{};
  ::uname(&system);
  std::pair version{0, 0};
  std::sscanf(system.release, "%d.%d", &version.first, &version.second);
  if (version < std::pair(6, 9)) {
    return {Verdict::ok, fmt::format("not in Linux {}", system.release),
            "from Linux 6.9 on, a mount under its server's kernel moves data without its daemon, and a killed daemon "
            "is replaced"};
  }
  const bool is_permitted = mounts_as_root() && is_initial_namespace("user") != false;
  if (is_permitted) return {Verdict::ok, "data can bypass the daemon, which is replaced if it is killed", ""};
  return {Verdict::ok, "all data goes through the daemon, which is replaced if it is killed",
          "only for root in the initial user namespace, a mount under its server's kernel moves data without its "
          "daemon"};
}

Finding check_mount_limits() {
  if (::access("/sys/class/bdi", W_OK) == 0)
    return {Verdict::ok, "a mount raises its read-ahead and its share of changed pages", ""};
  return {Verdict::ok, "128 KiB of read-ahead; changed pages of mappings: 1 % of the kernel's limit",
          "mount as root, where /sys is writable: wherry mount raises both (docs/files.md)"};
}

Finding check_leases() {
  if (number_in("/proc/sys/fs/leases-enable") == 0) {
    return {Verdict::warn, "turned off",
            "sysctl fs.leases-enable=1: without leases, mounts of files that this machine serves keep no pages and no "
            "writes"};
  }
  const auto seconds = number_in("/proc/sys/fs/lease-break-time");
  if (!seconds) return {Verdict::warn, "unknown: /proc/sys/fs/lease-break-time cannot be read", "mount /proc"};
  if (*seconds == 0) return {Verdict::ok, "without a limit of time", ""};
  const std::string found = fmt::format("the kernel ends them after {} s", *seconds);
  if (*seconds > kTimeouts * kRecallSeconds) return {Verdict::ok, found, ""};
  return {Verdict::warn, found,
          fmt::format("sysctl fs.lease-break-time=45, or start wherry serve with a --recall-timeout below {:.1f}: "
                      "otherwise mounts of its files keep no writes",
                      static_cast<double>(*seconds) / kTimeouts)};
}

}  // namespace wherry::tools::doctor
