// SPDX-License-Identifier: Apache-2.0
//
// How a card is started by the first program that needs one.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <wherry/error.hpp>

#include "base/unique_fd.hpp"
#include "file/cache.hpp"
#include "file/card.hpp"

namespace wherry::file {
namespace {

constexpr int kStarts = 50;   // cards may end, or be started by others, at the same moment
constexpr int kFailures = 3;  // of these, where no other process started one either
// Longest wait of a program for its first file, in which a card starts. A card takes some milliseconds.
constexpr std::chrono::seconds kCardStartTimeout{10};

using Clock = std::chrono::steady_clock;

/// A child that the program does not see: without a signal for it, nor for a wait(2) of the program's own.
pid_t quiet_fork() { return static_cast<pid_t>(::syscall(SYS_clone, 0UL, 0UL, 0UL, 0UL, 0UL)); }

/// What the card says, in memory that its starter shares with the program: a pipe of the program's would be inherited
/// by what other threads fork, and would not end before they do.
struct Words {
  std::size_t bytes;
  std::array<char, 4000> text;
};

/// Nothing of the caller's but its environment, less what concerns the programs that use the cache.
[[noreturn]] void become_card(const char* program, char* const* environment, int words) {
  if (::chdir("/") != 0) ::_exit(1);
  ::dup2(words, STDOUT_FILENO);
  ::dup2(words, STDERR_FILENO);
  ::syscall(SYS_close_range, 3U, ~0U, 0U);
  ::signal(SIGPIPE, SIG_DFL);
  // Handlers of the program's must not run here.
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action{};
    if (::sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    ::signal(number, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execle(program, "wherry", "card", "--until-last-client", static_cast<char*>(nullptr), environment);
  ::dprintf(STDERR_FILENO, "%s: cannot be run (error %d)\n", program, errno);
  ::_exit(1);
}

/// A process of its own, in which no signal is handled: starts the card, and ends when it serves, has ended, or says
/// nothing for too long.
[[noreturn]] void be_starter(const char* program, char* const* environment, Words& said, Clock::time_point deadline) {
  ::setsid();
  // An inherited end of a pipe would keep its reader waiting. The pipe that is made below is none of 0, 1 and 2.
  ::syscall(SYS_close_range, 0U, ~0U, 0U);
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, fd);
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) ::_exit(1);
  const pid_t card = quiet_fork();  // leads no session, and is soon init's child
  if (card == 0) become_card(program, environment, pipe[1]);
  ::close(pipe[1]);
  while (card > 0 && said.bytes < said.text.size()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd news{.fd = pipe[0], .events = POLLIN, .revents = 0};
    if (left <= 0 || ::poll(&news, 1, static_cast<int>(left)) <= 0) break;
    const ssize_t n = ::read(pipe[0], said.text.data() + said.bytes, said.text.size() - said.bytes);
    if (n <= 0) break;
    said.bytes += static_cast<std::size_t>(n);
  }
  ::_exit(0);
}

/// Of the card: what concerns programs that use the cache is left out. Made before the fork, where other threads' locks
/// may not be waited for.
std::vector<char*> environment_of_card() {
  std::vector<char*> kept;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!text.starts_with("LD_PRELOAD=") && !text.starts_with("WHERRY_FILES=")) kept.push_back(*variable);
  }
  kept.push_back(nullptr);
  return kept;
}

/// Until it serves, has ended, or the deadline has passed. Returns what it says.
std::string start(const std::string& program, Clock::time_point deadline) {
  void* const room = ::mmap(nullptr, sizeof(Words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) throw Error(errno, "start", program, "allow more memory (ulimit -v)");
  auto* const words = new (room) Words{};
  const std::vector<char*> environment = environment_of_card();
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t starter = quiet_fork();
  if (starter == 0) be_starter(program.c_str(), environment.data(), *words, deadline);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  while (starter > 0 && ::waitpid(starter, nullptr, __WALL) < 0 && errno == EINTR) continue;
  const std::string said(words->text.data(), std::min(words->bytes, words->text.size()));
  ::munmap(room, sizeof(Words));
  if (starter < 0) throw Error(error, "start", program, "allow more processes (ulimit -u)");
  return said;
}

/// A living one: the lock of a card that died is free.
bool has_card(const char* path) {
  const UniqueFd file(::open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  return file.valid() && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0;
}

}  // namespace

bool has_card() noexcept {
  std::array<char, kPathBytes> path{};
  return segment_path(path) && has_card(path.data());
}

void ensure_card(const std::string& program) {
  static Cache cache;  // a client as long as the process lives
  ensure_card(program, cache);
}

void ensure_card(const std::string& program, Cache& cache) {
  std::array<char, kPathBytes> path{};
  const bool named = segment_path(path);
  std::string said;
  Refusal refusal;
  int failures = 0;
  const Clock::time_point deadline = Clock::now() + kCardStartTimeout;
  for (int i = 0; i < kStarts && failures < kFailures && Clock::now() < deadline; ++i) {
    refusal = cache.attach();
    if (refusal.error == EINVAL || refusal.error == EACCES || refusal.error == EXDEV) break;
    if (cache.attached() && named && has_card(path.data())) return;
    said = start(program, deadline);
    if (refusal.error == ENOENT && !said.empty()) ++failures;
  }
  if (said.empty()) said = std::string(refusal.reason) + "; " + refusal.advice;
  while (said.ends_with('\n')) said.pop_back();
  throw Error(refusal.error == 0 ? ECHILD : refusal.error, "start the card of", path.data(), said);
}

}  // namespace wherry::file
