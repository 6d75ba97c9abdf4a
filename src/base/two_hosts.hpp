// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks: two hosts on this machine, which are network namespaces that a virtual cable joins.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>

#include "base/child_process.hpp"
#include "base/key_file.hpp"
#include "base/unique_fd.hpp"

namespace wherry {

/// Host 0 has the interface near0, host 1 has far0. Needs root, or the permission to make user namespaces. Host 0 is
/// node 0, host 1 is node 1 to 7. Make it in a process with one thread, which then moves to a host, or forks others
/// that do.
class TwoHosts {
 public:
  /// Throws std::runtime_error: what failed, and what to install or to permit.
  TwoHosts() : owner_(::getpid()) {
    const Holder near(user_);
    if (::geteuid() != 0) user_ = near.space("user");
    const Holder far(user_);
    networks_ = {near.space("net"), far.space("net")};
    join("link add near0 type veth peer name far0 netns " + std::to_string(far.pid()), 0);
    for (const std::uint32_t host : {0U, 1U}) {
      join("addr add " + address(host) + "/24 dev " + interface(host), host);
      join("link set lo up", host);
      join("link set " + interface(host) + " up", host);
    }
    std::string name = (std::filesystem::temp_directory_path() / "wherry-two-hosts-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) fail("make a folder for a key");
    folder_ = name;
    std::ofstream(folder_ / "hosts") << address(0) << "\n1-7 " << address(1) << '\n';
    make_key_file(folder_ / "key");
  }
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;
  /// Removes the files, in the process that made them. The namespaces end with their last process.
  ~TwoHosts() {
    std::error_code ignored;
    if (owner_ == ::getpid()) std::filesystem::remove_all(folder_, ignored);
  }

  /// Seen in these namespaces only.
  [[nodiscard]] static std::string address(std::uint32_t host) { return "10.98.0." + std::to_string(host + 1); }
  [[nodiscard]] static std::string interface(std::uint32_t host) { return host == 0 ? "near0" : "far0"; }

  /// Moves this process to a host, 0 or 1, and sets WHERRY_HOSTS, WHERRY_KEY, WHERRY_NODE and WHERRY_MACHINE. The
  /// process must have one thread. Throws std::system_error.
  void enter(std::uint32_t host) {
    move_to(host);
    // One kernel has both: without WHERRY_MACHINE they would meet in shared memory.
    ::setenv("WHERRY_HOSTS", (folder_ / "hosts").c_str(), 1);
    ::setenv("WHERRY_KEY", (folder_ / "key").c_str(), 1);
    ::setenv("WHERRY_NODE", std::to_string(host).c_str(), 1);
    ::setenv("WHERRY_MACHINE", ("host-" + std::to_string(host)).c_str(), 1);
  }

  /// For a process that has entered host 0: calls `what` in the network of host 1.
  void visit_far(const std::function<void()>& what) const {
    enter_namespace(networks_[1], CLONE_NEWNET);
    what();
    enter_namespace(networks_[0], CLONE_NEWNET);
  }

  /// Runs a shell command on a host, from any process. Returns whether it succeeded.
  [[nodiscard]] bool run(std::uint32_t host, const std::string& command) {
    return Child([&] {
             move_to(host);
             return std::system(command.c_str()) == 0;  // NOLINT(cert-env33-c)
           }).wait() == 0;
  }
  [[nodiscard]] bool ip(std::uint32_t host, const std::string& arguments) {
    return run(host, "ip " + arguments + " 2>/dev/null");
  }

 private:
  [[noreturn]] static void fail(const char* what) { throw std::system_error(errno, std::system_category(), what); }

  static void enter_namespace(const UniqueFd& space, int kind) {
    if (::setns(space.get(), kind) != 0) fail("enter a namespace");
  }

  /// A process in a new network namespace, until this object is destroyed.
  class Holder {
   public:
    /// `user`: the user namespace to be in. If there is none, a new one, except for root.
    explicit Holder(const UniqueFd& user) : child_([&] { return hold(user); }) {
      ready_writing_.reset();
      int error = 0;
      if (::read(ready_reading_.get(), &error, sizeof error) != sizeof error) error = ECHILD;
      if (error != 0) {
        throw std::runtime_error("two network namespaces cannot be made: " + std::system_category().message(error) +
                                 "; run as root, or permit user namespaces (sysctl "
                                 "kernel.unprivileged_userns_clone=1)");
      }
    }

    [[nodiscard]] pid_t pid() const { return child_.pid(); }
    [[nodiscard]] UniqueFd space(const char* kind) const {
      const std::string file = "/proc/" + std::to_string(pid()) + "/ns/" + kind;
      UniqueFd opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
      if (!opened.valid()) fail("open a namespace");
      return opened;
    }

   private:
    [[nodiscard]] bool hold(const UniqueFd& user) const {
      int error = 0;
      try {
        if (user.valid()) {
          enter_namespace(user, CLONE_NEWUSER);
        } else if (::geteuid() != 0) {
          become_root();
        }
        if (::unshare(CLONE_NEWNET) != 0) error = errno;
      } catch (const std::system_error& problem) {
        error = problem.code().value();
      }
      if (::write(ready_writing_.get(), &error, sizeof error) != sizeof error || error != 0) return false;
      for (;;) ::pause();
    }

    static std::array<int, 2> new_pipe() {
      std::array<int, 2> ends{};
      if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("make a pipe");
      return ends;
    }

    std::array<int, 2> ready_ = new_pipe();
    UniqueFd ready_reading_{ready_[0]};
    UniqueFd ready_writing_{ready_[1]};
    Child child_;
  };

  /// A user namespace in which this user is root, and may make network namespaces.
  static void become_root() {
    const std::string user = std::to_string(::geteuid());
    const std::string group = std::to_string(::getegid());
    if (::unshare(CLONE_NEWUSER) != 0) fail("make a user namespace");
    write("/proc/self/setgroups", "deny");
    write("/proc/self/uid_map", "0 " + user + " 1");
    write("/proc/self/gid_map", "0 " + group + " 1");
  }

  static void write(const char* file, const std::string& text) {
    if (!(std::ofstream(file) << text << std::flush)) fail(file);
  }

  void move_to(std::uint32_t host) {
    if (user_.valid() && !is_inside_) enter_namespace(user_, CLONE_NEWUSER);
    is_inside_ = true;
    enter_namespace(networks_.at(host), CLONE_NEWNET);
  }

  void join(const std::string& arguments, std::uint32_t host) {
    if (run(host, "ip " + arguments)) return;
    throw std::runtime_error("two hosts cannot be joined: `ip " + arguments + "` failed; install the package iproute2");
  }

  UniqueFd user_;  ///< the user namespace of both; none for root
  std::array<UniqueFd, 2> networks_;
  std::filesystem::path folder_;  ///< of the files that Wherry's programs on both hosts need
  int owner_ = 0;                 ///< process id
  bool is_inside_ = false;        ///< in that user namespace
};

}  // namespace wherry
