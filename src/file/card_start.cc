// SPDX-License-Identifier: Apache-2.0
//
// How a card is started by the first program that needs one.
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>

#include <wherry/error.hpp>

#include "base/unique_fd.hpp"
#include "file/cache.hpp"
#include "file/card.hpp"

namespace wherry::file {
namespace {

constexpr int kStarts = 50;   // cards may end, or be started by others, at the same moment
constexpr int kFailures = 3;  // where nobody else started one either

/// Nothing of the caller's but its environment, less what concerns the programs that use the cache.
[[noreturn]] void become_card(const char* program, int words) {
  ::setsid();
  if (::fork() != 0) ::_exit(0);  // it is nobody's child, and leads no session
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  if (::chdir("/") != 0) ::_exit(1);
  const int nothing = ::open("/dev/null", O_RDWR);
  ::dup2(words, STDOUT_FILENO);
  ::dup2(words, STDERR_FILENO);
  ::dup2(nothing, STDIN_FILENO);
  ::syscall(SYS_close_range, 3U, ~0U, 0U);
  for (const char* const name : {"LD_PRELOAD", "WHERRY_FILES"}) ::unsetenv(name);
  ::execl(program, "wherry", "card", "--until-last-client", static_cast<char*>(nullptr));
  ::dprintf(STDERR_FILENO, "%s: cannot be run (error %d)\n", program, errno);
  ::_exit(1);
}

/// Until it serves, or has ended. Returns what it says.
std::string start(const std::string& program) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) throw Error(errno, "start", program, "close descriptors");
  UniqueFd words(pipe[0]);
  UniqueFd theirs(pipe[1]);
  const pid_t child = ::fork();
  if (child < 0) throw Error(errno, "start", program, "allow more processes (ulimit -u)");
  if (child == 0) become_card(program.c_str(), theirs.get());
  theirs.reset();
  std::string said;
  std::array<char, 512> part;
  for (ssize_t n = 0; (n = ::read(words.get(), part.data(), part.size())) != 0;) {
    if (n > 0) said.append(part.data(), static_cast<std::size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  return said;
}

/// Nobody has the lock of a card that died.
bool has_card(const char* path) {
  const UniqueFd file(::open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  return file.valid() && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0;
}

}  // namespace

void ensure_card(const std::string& program) {
  std::array<char, kPathBytes> path{};
  static Cache cache;  // a client as long as the process lives
  std::string said;
  Refusal refusal;
  int failures = 0;
  for (int i = 0; i < kStarts && failures < kFailures; ++i) {
    refusal = cache.attach();
    if (refusal.error == EINVAL || refusal.error == EACCES || refusal.error == EXDEV) break;
    if (cache.attached() && segment_path(path) && has_card(path.data())) return;
    said = start(program);
    if (refusal.error == ENOENT && !said.empty()) ++failures;
  }
  if (said.empty()) said = std::string(refusal.reason) + "; " + refusal.advice;
  while (said.ends_with('\n')) said.pop_back();
  throw Error(refusal.error == 0 ? ECHILD : refusal.error, "start the card of", path.data(), said);
}

}  // namespace wherry::file
