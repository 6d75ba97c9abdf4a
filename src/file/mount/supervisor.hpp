// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "file/mount/kept_descriptors.hpp"

namespace wherry::file::mount {

/// Runs the daemon of a mount as a separate process, and keeps its descriptors. If the daemon is killed or crashes,
/// starts the next one with them. The kernel's device stays open meanwhile, so that calls on the mount wait.
///
/// It never accesses the mount, which may not answer. One thread.
class Supervisor {
 public:
  /// @param command  of the daemon: a program and its arguments. One is added: kSocketWord and the socket's number
  /// @param signals  a signalfd; its signals are passed on to the daemon
  /// @param ready  called once, when the mount answers
  Supervisor(std::vector<std::string> command, UniqueFd signals, std::function<void()> ready);
  static constexpr const char* kSocketWord = "supervisor=";

  /// Returns the exit status when the daemon has ended in order, or cannot be restarted. Throws Error if the first
  /// daemon cannot be started.
  int run();

 private:
  using Clock = std::chrono::steady_clock;

  void start();
  void pass_signal();
  void take_messages();
  void take(KeeperSocket::Received message);
  [[nodiscard]] int wait_for_daemon();
  [[nodiscard]] bool has_ended(int& status);
  void reap();
  [[nodiscard]] bool is_to_start_again(int status);
  void pause();
  int give_up();

  std::vector<std::string> command_;
  UniqueFd signals_;
  std::function<void()> ready_;
  std::map<KeptKey, UniqueFd> kept_;
  std::string directory_;
  std::optional<dev_t> mounted_;
  int ending_ = 0;  ///< the signal that was passed on; 0: none
  pid_t daemon_ = 0;
  int checks_ = 0;                     ///< checks of a daemon that has closed its end of the socket
  std::vector<pid_t> ending_daemons_;  ///< killed daemons that wait in the kernel, which waits for the next daemon
  UniqueFd socket_;
  int deaths_ = 0;  ///< since a daemon last answered a request
};

}  // namespace wherry::file::mount
