// SPDX-License-Identifier: Apache-2.0
//
// wherry-bench-file-mount WHERRY FOLDER [OPTION of wherry mount, or --no-lend]... -- COMMAND...: becomes a command that
// sees, over the folder, a mount of a server of it. Nothing else sees that, and server and mount end with the command.
// With the only option --sshfs, the mount is sshfs, and the server OpenSSH's sftp-server.
// Or check [--sshfs]: exit status 0 if mounting is permitted, else 1 and why not.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "bench/systems/file/program/private_mounts.hpp"

namespace {

using namespace wherry::bench;

[[noreturn]] void become(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execv(words[0], words.data());
  fmt::print(stderr, "cannot run {}\n", command[0]);
  std::_Exit(127);
}

/// A process that is killed when this one has ended. It keeps no pipe of this one's.
/// @param input_and_output  -1: /dev/null
pid_t start(const std::vector<std::string>& command, int input_and_output = -1) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::system_category(), "fork");
  if (child > 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) std::_Exit(1);
  const wherry::UniqueFd nothing(::open("/dev/null", O_RDWR));
  const int both = input_and_output < 0 ? nothing.get() : input_and_output;
  ::dup2(both, STDIN_FILENO);
  ::dup2(both, STDOUT_FILENO);
  become(command);
}

bool is_mounted(const std::string& folder) {
  struct statfs found{};
  return ::statfs(folder.c_str(), &found) == 0 && found.f_type == file::kFuseMagic;
}

void wait_for_mount(const std::string& folder, pid_t daemon, const std::string& name) {
  while (!is_mounted(folder)) {
    if (::waitpid(daemon, nullptr, WNOHANG) != 0) throw std::runtime_error(name + " has ended");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

/// The program of that name in one of these folders. Throws std::runtime_error if none has it.
std::string find_program(const std::string& name, std::span<const char* const> folders) {
  for (const char* const folder : folders) {
    if (const std::string path = fmt::format("{}/{}", folder, name); ::access(path.c_str(), X_OK) == 0) return path;
  }
  throw std::runtime_error("no program " + name + "; scripts/setup bench installs it");
}

std::string sshfs_program() {
  constexpr std::array kFolders{"/usr/bin", "/usr/local/bin", "/bin"};
  return find_program("sshfs", kFolders);
}

std::string sftp_server_program() {
  constexpr std::array kFolders{"/usr/lib/openssh", "/usr/libexec/openssh", "/usr/lib/ssh", "/usr/libexec", "/usr/lib"};
  return find_program("sftp-server", kFolders);
}

/// The server resolves the folder's name at each request, so it must not see the mount. The two talk through a pair of
/// sockets: without ssh, its encryption and a network.
void mount_sshfs(const std::string& folder) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw std::system_error(errno, std::system_category(), "socketpair");
  const wherry::UniqueFd near(ends[0]);
  const wherry::UniqueFd far(ends[1]);
  start({sftp_server_program()}, far.get());
  file::keep_mounts_private();
  wait_for_mount(folder, start({sshfs_program(), "-f", "-o", "passive", ":" + folder, folder}, near.get()), "sshfs");
}

void mount(const std::string& wherry, const std::string& folder, std::vector<std::string> options) {
  file::keep_mounts_private();
  ::setenv("WHERRY_JOB", fmt::format("bench-{}", ::getpid()).c_str(), 1);
  const std::string address = "wherry://0:7000";
  std::vector<std::string> server{wherry, "serve", "--quiet", "--root", folder, "--listen", address};
  if (std::erase(options, "--no-lend") != 0) server.emplace_back("--no-lend");
  start(server);
  std::vector<std::string> command{wherry, "mount", "--quiet", address, folder};
  command.insert(command.end(), options.begin(), options.end());
  wait_for_mount(folder, start(command), "wherry mount");
}

int check(bool sshfs) {
  const wherry::UniqueFd device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!device.valid()) {
    fmt::print("/dev/fuse: {}\n", std::system_category().message(errno));
    return 1;
  }
  if (sshfs) {
    (void)sshfs_program();
    (void)sftp_server_program();
  }
  file::keep_mounts_private();
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> all(words, words + count);
  try {
    const std::string sshfs = "--sshfs";
    if (count >= 2 && all[1] == "check") return check(all.back() == sshfs);
    std::size_t end = 3;
    while (end < all.size() && all[end] != "--") ++end;
    if (end + 1 >= all.size()) {
      fmt::print(stderr, "usage: wherry-bench-file-mount WHERRY FOLDER [OPTION]... -- COMMAND...\n");
      return 2;
    }
    if (all[3] == sshfs)
      mount_sshfs(all[2]);
    else
      mount(all[1], all[2], {all.begin() + 3, all.begin() + static_cast<std::ptrdiff_t>(end)});
    become({all.begin() + static_cast<std::ptrdiff_t>(end) + 1, all.end()});
  } catch (const std::exception& error) {
    fmt::print(stderr, "wherry-bench-file-mount: {}\n", error.what());
    return 1;
  }
}
