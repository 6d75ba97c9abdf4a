// SPDX-License-Identifier: Apache-2.0
//
// wherry-mount, which `wherry mount` executes after it has read the command line (tools/mount.cc). It is a separate
// program since it alone needs libfuse. Its arguments are name=value. It is the supervisor, and executes itself again
// as the daemon.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <wherry/error.hpp>

#include "base/printable.hpp"
#include "base/service_process.hpp"
#include "base/standard_descriptors.hpp"
#include "base/unique_fd.hpp"
#include "file/mount/fault_plan.hpp"
#include "file/mount/kept_descriptors.hpp"
#include "file/mount/session.hpp"
#include "file/mount/supervisor.hpp"

namespace {

using wherry::Error;
using wherry::printable;
using wherry::UniqueFd;
using wherry::file::mount::KeptDescriptors;
using wherry::file::mount::KeptKind;
using wherry::file::mount::MountOptions;
using wherry::file::mount::Session;
using wherry::file::mount::Supervisor;

struct Options {
  MountOptions mount;
  std::string log;
  std::string fault_plan;  ///< a file; only tests pass it
  bool daemon = false;
  bool quiet = false;
  int supervisor = -1;  ///< the supervisor's socket; -1: this is the supervisor
};

std::size_t number_of(std::string_view value) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size()) throw std::invalid_argument(std::string(value));
  return number;
}

void take(Options& options, std::string_view name, std::string_view value) {
  if (name == "address") options.mount.address = value;
  if (name == "directory") options.mount.directory = value;
  if (name == "log") options.log = value;
  if (name == "fault-plan") options.fault_plan = value;
  if (name == "timeout-ms") options.mount.timeout = std::chrono::milliseconds(number_of(value));
  if (name == "threads") options.mount.threads = number_of(value);
  if (name == "write-buffer") options.mount.write_buffer = number_of(value);
  if (name == "connections") options.mount.connections = number_of(value);
  if (name == "read-only") options.mount.read_only = number_of(value) != 0;
  if (name == "allow-other") options.mount.allow_other = number_of(value) != 0;
  if (name == "passthrough") options.mount.passthrough = number_of(value) != 0;
  if (name == "daemon") options.daemon = number_of(value) != 0;
  if (name == "quiet") options.quiet = number_of(value) != 0;
  if (name == "supervisor") options.supervisor = static_cast<int>(number_of(value));
}

Options options_of(std::span<char* const> words) {
  Options options;
  for (const std::string_view word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) throw std::invalid_argument(std::string(word));
    take(options, word.substr(0, equals), word.substr(equals + 1));
  }
  if (options.mount.threads == 0 || options.mount.connections == 0) throw std::invalid_argument("no threads");
  return options;
}

/// Redirects output to the log. A daemon without a log writes to /dev/null, another process as before.
void redirect(const Options& options, int log) {
  const UniqueFd nothing(options.daemon ? ::open("/dev/null", O_RDWR | O_CLOEXEC) : -1);
  if (nothing.valid()) {
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing.get(), standard);
  }
  if (log >= 0) ::dup2(log, STDERR_FILENO);
}

UniqueFd open_log(const std::string& name) {
  if (name.empty()) return {};
  UniqueFd log(::open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!log.valid()) throw Error(errno, "write the log", name, "name a file that can be written");
  return log;
}

UniqueFd prepare_process() {
  UniqueFd signals = wherry::prepare_service_process({SIGINT, SIGTERM, SIGHUP});
  if (!signals.valid()) throw Error(errno, "mount", "", "raise the limit of open files (ulimit -n)");
  return signals;
}

void leave_folder(const Options& options) {
  if (options.daemon && ::chdir("/") != 0) throw Error(errno, "change to", "/", "");
}

/// Runs the daemon. A later daemon inherits the supervisor's folder and output.
int serve(const Options& options) {
  ::prctl(PR_SET_NAME, "wherry-mount");
  ::fcntl(options.supervisor, F_SETFD, FD_CLOEXEC);
  KeptDescriptors kept{UniqueFd(options.supervisor)};
  const bool takes_over = kept.has({KeptKind::device});
  const UniqueFd log = takes_over ? UniqueFd() : open_log(options.log);
  ::umask(0);  // programs choose the mode of a file themselves
  const UniqueFd signals = prepare_process();
  Session session(options.mount, kept);
  leave_folder(options);
  session.start();
  if (!takes_over && !options.quiet) {
    std::fprintf(stderr, "wherry mount: %s is mounted on %s%s\n", printable(options.mount.address).c_str(),
                 printable(session.directory()).c_str(), session.passes_through() ? " (passthrough)" : "");
  }
  if (!takes_over) redirect(options, log.get());
  kept.report_ready();
  return session.wait(signals.get()) ? 0 : 1;
}

/// @param ready  gets one byte when the mount answers; -1: none
int supervise(const Options& options, std::vector<std::string> command, UniqueFd ready) {
  const UniqueFd log = open_log(options.log);
  Supervisor supervisor(std::move(command), prepare_process(), [&] {
    redirect(options, log.get());
    leave_folder(options);
    if (ready.valid() && ::write(ready.get(), "", 1) != 1) throw Error(errno, "report that the mount answers", "", "");
    ready.reset();
  });
  return supervisor.run();
}

/// The parent returns 0 when the mount answers, or the child's exit status if the child ends before that.
int supervise_as_daemon(const Options& options, std::vector<std::string> command) {
  // An inherited pipe would otherwise stay open until the daemon ends.
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(errno, "start a daemon", "", "raise the limit of open files");
  UniqueFd answered(ends[0]);
  UniqueFd ready(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) throw Error(errno, "start a daemon", "", "allow more processes (ulimit -u, pids.max)");
  if (child == 0) {
    answered.reset();
    ::setsid();
    return supervise(options, std::move(command), std::move(ready));
  }
  ready.reset();
  char byte = 0;
  ssize_t got = 0;
  while ((got = ::read(answered.get(), &byte, 1)) < 0 && errno == EINTR) continue;
  if (got == 1) return 0;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

int main(int argc, char** argv) {
  wherry::reserve_standard_descriptors();
  std::signal(SIGCHLD, SIG_DFL);  // if it were ignored, a child's exit status would be lost
  try {
    const auto words = std::span(argv, static_cast<std::size_t>(argc));
    const Options options = options_of(words.subspan(1));
    if (!options.fault_plan.empty()) wherry::file::mount::follow_fault_plan(options.fault_plan);
    if (options.supervisor >= 0) return serve(options);
    std::vector<std::string> command(words.begin(), words.end());
    return options.daemon ? supervise_as_daemon(options, std::move(command))
                          : supervise(options, std::move(command), UniqueFd());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "wherry mount: %s\n", printable(error.what()).c_str());
    return 1;
  }
}
