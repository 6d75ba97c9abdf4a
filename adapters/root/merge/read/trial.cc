// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/read/trial.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "adapters/root/merge/check/image_check.hpp"
#include "adapters/root/merge/read/source.hpp"

namespace wherry::merge {

namespace {

// Timeout, for a file that sends ROOT into an endless loop.
constexpr unsigned kMostSeconds = 30;

[[noreturn]] void read_and_exit(std::span<const std::byte> file, pid_t parent) {
  // This process inherits the server's sockets. It must not outlive its parent: a successor could not listen, and
  // workers would not notice the death.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM}) std::signal(signal, SIG_DFL);
  // These signals ask the server to end and are sent to its process group. They must not make the file look bad.
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_IGN);
  ::close(STDERR_FILENO);  // hides the C library's messages about a corrupt heap
  ::alarm(kMostSeconds);
  {
    const Source source(file);
  }
  ::_exit(0);
}

}  // namespace

std::string try_to_read(std::span<const std::byte> file, bool check) {
  // A copy, because the memory of workers' windows is not inherited by a forked process.
  const std::vector<std::byte> copy(file.begin(), file.end());
  std::string fault = check ? fault_in_image(copy) : "";
  if (!fault.empty()) return fault;
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return std::string("cannot fork a process to try it: ") + std::strerror(errno);
  if (child == 0) read_and_exit(copy, parent);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return std::strerror(errno);
  }
  if (WIFSIGNALED(status)) return std::string("it crashes ROOT: ") + ::strsignal(WTERMSIG(status));
  return {};
}

}  // namespace wherry::merge
