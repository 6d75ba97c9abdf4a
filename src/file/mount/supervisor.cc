// SPDX-License-Identifier: Apache-2.0
#include "file/mount/supervisor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include <wherry/error.hpp>

#include "base/log.hpp"
#include "file/mount/fault_points.hpp"
#include "file/mount/layout/kept_descriptors.hpp"
#include "file/mount/mount_point.hpp"

namespace wherry::file::mount {
namespace {

using layout::KeeperWord;

/// Limit of successive daemons that have answered no request.
constexpr int kMostDeaths = 10;
/// Pause after the second successive daemon that has answered no request; doubled after each later one.
constexpr int kFirstPauseMs = 20;
constexpr int kLongestPauseMs = 250;

/// Checks of a daemon whose threads end one after the other.
constexpr int kPauseMs = 1;
constexpr int kFewChecks = 20;
constexpr int kManyChecks = 5000;  ///< if it is unknown what a thread does
constexpr int kReapPauseMs = 100;

/// What the remaining threads of a killed process are doing.
enum class Activity : std::uint8_t {
  notifying_kernel,  ///< tells the kernel to drop pages. Waits for a page that is being read, hence for an answer;
                     ///< changes nothing
  in_system_call,    ///< any other system call, which may change files
  unknown,
};

Activity activity_of(const std::filesystem::path& thread) {
  std::ifstream file(thread / "syscall");
  if (!file) return Activity::unknown;
  long number = -1;
  unsigned long descriptor = 0;
  // A running thread has the word "running" instead of numbers.
  if (!(file >> number >> std::hex >> descriptor)) return file.bad() ? Activity::unknown : Activity::in_system_call;
  if (number < 0) return Activity::unknown;
  if (number != SYS_write && number != SYS_writev) return Activity::in_system_call;
  std::error_code error;
  const bool is_device =
      std::filesystem::read_symlink(thread / "fd" / std::to_string(descriptor), error) == "/dev/fuse";
  return is_device ? Activity::notifying_kernel : Activity::in_system_call;
}

/// Checks all threads but the first. `in_system_call` takes precedence, then `unknown`.
Activity activity_of(pid_t process) {
  std::error_code error;
  int count = 0;
  bool is_known = true;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task", error)) {
    if (thread.path().filename() == std::to_string(process)) continue;  // has ended, and waits for the others
    const Activity activity = activity_of(thread.path());
    if (activity == Activity::in_system_call) return activity;
    is_known = is_known && activity == Activity::notifying_kernel;
    ++count;
  }
  return is_known && count > 0 ? Activity::notifying_kernel : Activity::unknown;
}

const char* cause_of(int status) { return ::strsignal(WTERMSIG(status)); }

}  // namespace

Supervisor::Supervisor(std::vector<std::string> command, UniqueFd signals, std::function<void()> ready)
    : command_(std::move(command)), signals_(std::move(signals)), ready_(std::move(ready)) {}

/// Between fork and exec the child makes only system calls. A signal that arrives before the daemon handles signals
/// stays blocked and pending until then.
void Supervisor::start() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw Error(errno, "start", command_.front(), "raise the limit of open files (ulimit -n)");
  socket_.reset(ends[0]);
  UniqueFd other(ends[1]);
  std::vector<std::string> words = command_;
  words.push_back(kSocketWord + std::to_string(other.get()));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  daemon_ = ::fork();
  if (daemon_ < 0) throw Error(errno, "start", command_.front(), "allow more processes (ulimit -u, pids.max)");
  if (daemon_ == 0) {
    ::fcntl(other.get(), F_SETFD, 0);
    ::execv("/proc/self/exe", arguments.data());
    ::_exit(127);
  }
  pass(FaultPoint::daemon_started);
  other.reset();  // so that sending to a dead daemon does not block
  const auto keep = static_cast<std::uint32_t>(KeeperWord::keep);
  for (const auto& [key, descriptor] : kept_) {
    // A daemon that lacks one must not serve. It ends when it finds the end of the messages.
    if (!KeeperSocket::send(socket_.get(), keep, key, descriptor.get())) {
      ::shutdown(socket_.get(), SHUT_WR);
      return;
    }
    pass(FaultPoint::descriptor_given);
  }
  KeeperSocket::send(socket_.get(), static_cast<std::uint32_t>(KeeperWord::all), {});
}

void Supervisor::pass_signal() {
  signalfd_siginfo signal{};
  if (::read(signals_.get(), &signal, sizeof signal) != sizeof signal) return;
  ending_ = static_cast<int>(signal.ssi_signo);
  ::kill(daemon_, ending_);
}

void Supervisor::take_messages() {
  for (auto message = KeeperSocket::receive(socket_.get(), false); message.word != 0;
       message = KeeperSocket::receive(socket_.get(), false))
    take(std::move(message));
}

void Supervisor::take(KeeperSocket::Received message) {
  switch (static_cast<KeeperWord>(message.word)) {
    case KeeperWord::keep:
      if (message.descriptor.valid())
        kept_[message.key] = std::move(message.descriptor);
      else
        log::write(
            log::Level::error,
            "wherry mount: cannot keep a descriptor for the next daemon; raise the limit of open files (ulimit -n)");
      break;
    case KeeperWord::drop:
      kept_.erase(message.key);
      break;
    case KeeperWord::mounted:
      directory_ = message.text;
      mounted_ = mounted_device(directory_);
      break;
    case KeeperWord::ready:
      if (const auto ready = std::exchange(ready_, nullptr); ready) ready();
      break;
    case KeeperWord::served:
      deaths_ = 0;
      break;
    case KeeperWord::all:
      break;
  }
}

/// Serves the daemon until it ends. Returns its status, after all of its messages are processed.
int Supervisor::wait_for_daemon() {
  std::array<pollfd, 2> wanted{{{signals_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}}};
  checks_ = 0;
  while (true) {
    const int timeout = ending_daemons_.empty() ? -1 : kReapPauseMs;
    if (::poll(wanted.data(), wanted.size(), checks_ != 0 ? kPauseMs : timeout) < 0) continue;
    if (wanted[0].revents != 0) pass_signal();
    take_messages();
    reap();
    if ((wanted[1].revents & POLLHUP) != 0) wanted[1].fd = -1;
    if (int status = 0; wanted[1].fd < 0 && has_ended(status)) {
      take_messages();
      return status;
    }
  }
}

/// Its end of the socket is closed: it has ended, or all of its threads have but one with a descriptor table of its
/// own.
bool Supervisor::has_ended(int& status) {
  if (::waitpid(daemon_, &status, WNOHANG) == daemon_) return true;
  ++checks_;
  if (checks_ < kFewChecks) return false;
  const Activity activity = activity_of(daemon_);
  if (checks_ == kManyChecks && activity == Activity::in_system_call)
    log::write(log::Level::warning, "wherry mount: the next daemon waits for a system call of the killed one");
  if (activity == Activity::in_system_call || (activity == Activity::unknown && checks_ < kManyChecks)) return false;
  log::write(log::Level::info, "wherry mount: a thread of the daemon still waits for a page");
  ending_daemons_.push_back(daemon_);
  status = SIGKILL;
  return true;
}

void Supervisor::reap() {
  std::erase_if(ending_daemons_, [](pid_t daemon) { return ::waitpid(daemon, nullptr, WNOHANG) != 0; });
}

bool Supervisor::is_to_start_again(int status) {
  return WIFSIGNALED(status) && kept_.contains({KeptKind::device}) && deaths_ < kMostDeaths;
}

/// A signal ends the pause.
void Supervisor::pause() {
  if (++deaths_ == 1) return;
  pollfd wanted{signals_.get(), POLLIN, 0};
  ::poll(&wanted, 1, std::min(kFirstPauseMs << std::min(deaths_ - 2, 6), kLongestPauseMs));
}

int Supervisor::run() {
  start();
  while (true) {
    const int status = wait_for_daemon();
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || !mounted_)) return WEXITSTATUS(status);
    if (!is_to_start_again(status)) return give_up();
    log::write(log::Level::warning,
               std::string("wherry mount: the daemon has ended: ") + cause_of(status) + "; starting another one");
    pass(FaultPoint::daemon_ended);
    pause();
    try {
      start();
      // The earlier daemon did not get the signal, or did not finish.
      if (ending_ != 0) ::kill(daemon_, ending_);
    } catch (const Error& error) {
      log::write(log::Level::error, std::string("wherry mount: ") + error.what());
      return give_up();
    }
  }
}

/// Once the device is closed the mount no longer answers, and can be detached.
int Supervisor::give_up() {
  const bool had_device = kept_.contains({KeptKind::device});
  kept_.clear();
  if (!had_device || !mounted_ || mounted_device(directory_) != mounted_) return 1;
  log::write(log::Level::error, "wherry mount: no daemon serves " + directory_ + " any more; unmounting it");
  unmount(directory_, true);
  return 1;
}

}  // namespace wherry::file::mount
