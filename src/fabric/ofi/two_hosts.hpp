// SPDX-License-Identifier: Apache-2.0
// For tests: a process in two network namespaces that a veth pair joins. It creates sockets in both and drives both
// ends.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <string>

#include "base/child_process.hpp"
#include "base/unique_fd.hpp"

namespace wherry::fabric::ofi {

/// The process is in the namespace of near0 (10.97.0.1, 2001:db8::1), and enters that of far0 (10.97.0.2, 2001:db8::2)
/// with `in_far`. Use it in a child process with one thread, which stays in these namespaces.
class TwoHosts {
 public:
  /// Creates the namespaces. False if the kernel does not allow it to this user, or if there is no iproute2.
  bool join() {
    const std::string user = std::to_string(::geteuid());
    const std::string group = std::to_string(::getegid());
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) != 0) return false;
    write("/proc/self/uid_map", "0 " + user + " 1");
    write("/proc/self/setgroups", "deny");
    write("/proc/self/gid_map", "0 " + group + " 1");
    far_ = UniqueFd(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
    keeper_.emplace([] {
      ::pause();
      return true;
    });
    if (!ip("link set lo up") || ::unshare(CLONE_NEWNET) != 0) return false;
    near_ = UniqueFd(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
    return ip("link set lo up") &&
           ip("link add near0 type veth peer name far0 netns " + std::to_string(keeper_->pid())) &&
           set_up("near0", "1") && far_ip_sets_up();
  }

  static bool ip(const std::string& arguments) {
    return std::system(("ip " + arguments + " 2>/dev/null").c_str()) == 0;  // NOLINT(cert-env33-c)
  }
  bool far_ip(const std::string& arguments) {
    bool is_done = false;
    in_far([&] { is_done = ip(arguments); });
    return is_done;
  }
  void in_far(const std::function<void()>& what) {
    if (::setns(far_.get(), CLONE_NEWNET) != 0) std::abort();
    what();
    if (::setns(near_.get(), CLONE_NEWNET) != 0) std::abort();
  }
  /// Sets the lines of /etc/hosts for this process.
  static bool set_hosts(const std::string& lines) { return set_file("/etc/hosts", lines); }
  /// Makes every name but those of /etc/hosts unknown for minutes: the resolver asks a host that does not answer.
  bool lose_names() {
    return far_ip("route add blackhole 10.97.0.1/32") && set_file("/etc/nsswitch.conf", "hosts: files dns\n") &&
           set_file("/etc/resolv.conf", "nameserver 10.97.0.2\noptions timeout:30 attempts:5\n");
  }

 private:
  static bool set_file(const char* path, const std::string& lines) {
    std::string file = "/tmp/wherry-hosts-XXXXXX";
    const UniqueFd made(::mkstemp(file.data()));
    write(file, lines);
    const bool is_set = ::mount(file.c_str(), path, nullptr, MS_BIND, nullptr) == 0;
    ::unlink(file.c_str());
    return is_set;
  }
  static void write(const std::string& file, const std::string& text) { std::ofstream(file) << text; }
  static bool set_up(const std::string& interface, const std::string& number) {
    return ip("addr add 10.97.0." + number + "/24 dev " + interface) &&
           ip("addr add 2001:db8::" + number + "/64 nodad dev " + interface) && ip("link set " + interface + " up");
  }
  bool far_ip_sets_up() {
    bool is_up = false;
    in_far([&] { is_up = set_up("far0", "2"); });
    return is_up;
  }

  UniqueFd near_;
  UniqueFd far_;
  std::optional<Child> keeper_;  // a process in the far namespace, by which ip(8) names it
};

}  // namespace wherry::fabric::ofi
