// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/net/two_hosts.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "base/key_file.hpp"

namespace wherry::bench::net {
namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::system_category(), what); }

void enter_namespace(const UniqueFd& space, int kind) {
  if (space.valid() && ::setns(space.get(), kind) != 0) fail("enter a network namespace");
}

void write(const char* file, const std::string& text) {
  if (!(std::ofstream(file) << text << std::flush)) fail(file);
}

/// A user namespace in which this user is root, and may make network namespaces.
void become_root() {
  const std::string user = std::to_string(::geteuid());
  const std::string group = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER) != 0) fail("make a user namespace");
  write("/proc/self/setgroups", "deny");
  write("/proc/self/uid_map", "0 " + user + " 1");
  write("/proc/self/gid_map", "0 " + group + " 1");
}

}  // namespace

/// A process in a new network namespace, until this object is destroyed.
class TwoHosts::Holder {
 public:
  /// `user`: the user namespace to be in; if there is none, a new one unless this is root.
  explicit Holder(const UniqueFd& user) {
    std::array<int, 2> ready{};
    if (::pipe2(ready.data(), O_CLOEXEC) != 0) fail("pipe2");
    const UniqueFd reading(ready[0]);
    UniqueFd writing(ready[1]);
    pid_ = ::fork();
    if (pid_ < 0) fail("fork");
    if (pid_ == 0) hold(user, writing.get());
    writing = UniqueFd();
    int error = 0;
    if (::read(reading.get(), &error, sizeof error) != sizeof error) error = ECHILD;
    if (error != 0) {
      end();
      throw std::runtime_error(
          fmt::format("two network namespaces cannot be made: {}; run as root, or permit user namespaces (sysctl "
                      "kernel.unprivileged_userns_clone=1)",
                      std::system_category().message(error)));
    }
  }
  ~Holder() { end(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] UniqueFd space(const char* kind) const {
    UniqueFd opened(::open(fmt::format("/proc/{}/ns/{}", pid_, kind).c_str(), O_RDONLY | O_CLOEXEC));
    if (!opened.valid()) fail("open a namespace");
    return opened;
  }

 private:
  [[noreturn]] static void hold(const UniqueFd& user, int ready) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
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
    if (::write(ready, &error, sizeof error) != sizeof error || error != 0) ::_exit(1);
    for (;;) ::pause();
  }

  void end() const {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  pid_t pid_ = -1;
};

TwoHosts::TwoHosts() : owner_(::getpid()) {
  const Holder near(user_);
  if (::geteuid() != 0) user_ = near.space("user");
  const Holder far(user_);
  networks_ = {near.space("net"), far.space("net")};
  run(0, fmt::format("ip link add near0 type veth peer name far0 netns {}", far.pid()));
  for (const std::uint32_t host : {0U, 1U}) {
    const char* cable = host == 0 ? "near0" : "far0";
    run(host, fmt::format("ip addr add {}/24 dev {} && ip link set lo up && ip link set {} up", kAddresses[host], cable,
                          cable));
  }
  std::string name = (std::filesystem::temp_directory_path() / "wherry-bench-net-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) fail("make a folder for the key of two hosts");
  folder_ = name;
  std::ofstream(folder_ / "hosts") << kAddresses[0] << '\n' << kAddresses[1] << '\n';
  make_key_file(folder_ / "key");
}

TwoHosts::~TwoHosts() {
  std::error_code ignored;
  if (owner_ == ::getpid()) std::filesystem::remove_all(folder_, ignored);
}

void TwoHosts::enter(std::uint32_t host) const {
  enter_namespace(user_, CLONE_NEWUSER);
  enter_namespace(networks_.at(host), CLONE_NEWNET);
  set_environment(host);
}

/// One kernel has both: without WHERRY_MACHINE they would meet in shared memory.
void TwoHosts::set_environment(std::uint32_t host) const {
  ::setenv("WHERRY_HOSTS", (folder_ / "hosts").c_str(), 1);
  ::setenv("WHERRY_KEY", (folder_ / "key").c_str(), 1);
  ::setenv("WHERRY_NODE", std::to_string(host).c_str(), 1);
  ::setenv("WHERRY_MACHINE", fmt::format("bench-{}", host).c_str(), 1);
}

void TwoHosts::run(std::uint32_t host, const std::string& command) const {
  const pid_t child = ::fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    try {
      enter_namespace(user_, CLONE_NEWUSER);
      enter_namespace(networks_.at(host), CLONE_NEWNET);
    } catch (const std::system_error&) {
      ::_exit(1);
    }
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (status != 0) {
    throw std::runtime_error("two hosts cannot be joined: `" + command + "` failed; install the package iproute2");
  }
}

}  // namespace wherry::bench::net
