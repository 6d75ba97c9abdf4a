// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/programs/program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "bench/harness/check.hpp"
#include "bench/harness/programs/supervisor.hpp"

namespace wherry::bench {
namespace {

constexpr std::chrono::milliseconds kPoliteness{3000};

std::string unique_name() {
  static int number = 0;
  return fmt::format("wherry-bench-{}-{}", ::getpid(), ++number);
}

void signal_each(const std::vector<pid_t>& processes, int signal) {
  for (const pid_t process : processes) ::kill(process, signal);
}

/// False when the program no longer reads. SIGPIPE must not end `wherry bench`: the program's last words are the better
/// news.
bool write_line(int descriptor, std::string_view line) {
  const std::string bytes = fmt::format("{}\n", line);
  struct sigaction ignore{};
  struct sigaction before{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before);
  const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
  ::sigaction(SIGPIPE, &before, nullptr);
  return written == static_cast<ssize_t>(bytes.size());
}

}  // namespace

Program::Program(std::vector<std::string> command, Clock::time_point deadline)
    : path_(command.at(0)), owner_(::getpid()) {
  const std::string name = unique_name();
  command.push_back(name);
  std::array<int, 2> to_program{};
  std::array<int, 2> from_program{};
  check(::pipe2(to_program.data(), O_CLOEXEC) == 0, "pipe");
  check(::pipe2(from_program.data(), O_CLOEXEC) == 0, "pipe");
  errors_ = ::memfd_create("errors", MFD_CLOEXEC);
  input_ = to_program[1];
  output_ = from_program[0];
  check(errors_ >= 0, "memfd_create");
  supervisor_ = start_supervisor({std::move(command), to_program[0], from_program[1], errors_, name});
  ::close(to_program[0]);
  ::close(from_program[1]);
  try {
    introduce(deadline);
  } catch (...) {
    close_all();
    throw;
  }
}

Program::~Program() {
  // A process that was forked off has a copy of this object, but the program is not its own.
  if (::getpid() != owner_) return;
  resume();
  if (!failed_ && write_line(input_, "end")) ended_within(kPoliteness);
  close_all();
}

void Program::close_all() {
  if (supervisor_ > 0 && !ended_within(std::chrono::milliseconds{0})) {
    ::kill(supervisor_, SIGTERM);
    while (::waitpid(supervisor_, nullptr, 0) < 0 && errno == EINTR) continue;
    supervisor_ = -1;
  }
  for (const int descriptor : {input_, output_, errors_}) ::close(descriptor);
}

bool Program::ended_within(std::chrono::milliseconds time) {
  const auto end = Clock::now() + time;
  while (true) {
    if (::waitpid(supervisor_, nullptr, WNOHANG) == supervisor_) {
      supervisor_ = -1;
      return true;
    }
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
}

void Program::introduce(Clock::time_point deadline) {
  std::istringstream pids(hear("processes", deadline));
  for (pid_t pid = 0; pids >> pid;) {
    if (pid <= 1) fail("names a process that cannot be its own");
    processes_.push_back(pid);
  }
  if (processes_.empty()) fail("names no process");
  version_ = hear("version", deadline);
}

void Program::tell(std::string_view line) {
  if (!write_line(input_, line)) fail("no longer listens");
}

std::string Program::hear(std::string_view word, Clock::time_point deadline) {
  const std::string line = read_line(deadline);
  if (line == word) return {};
  if (!line.starts_with(fmt::format("{} ", word)))
    fail(fmt::format("should have said '{}', but said '{:.80}'", word, line));
  return line.substr(word.size() + 1);
}

std::string Program::read_line(Clock::time_point deadline) {
  std::size_t searched = 0;
  while (true) {
    const auto end = unread_.find('\n', searched);
    if (end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    searched = unread_.size();
    if (!read_more(deadline)) fail("has ended");
  }
}

bool Program::read_more(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  pollfd ready{output_, POLLIN, 0};
  const int count = left.count() <= 0 ? 0 : ::poll(&ready, 1, static_cast<int>(left.count()));
  if (count == 0) fail("does not answer in time");
  if (count < 0) return errno == EINTR;
  std::array<char, 65536> bytes{};
  const ssize_t got = ::read(output_, bytes.data(), bytes.size());
  if (got > 0) unread_.append(bytes.data(), static_cast<std::size_t>(got));
  return got > 0;
}

void Program::pause() { signal_each(processes_, SIGSTOP); }
void Program::resume() { signal_each(processes_, SIGCONT); }

std::string Program::last_words() const {
  constexpr off_t kMost = 600;
  std::string text(static_cast<std::size_t>(kMost), '\0');
  const off_t length = ::lseek(errors_, 0, SEEK_END);
  const ssize_t got = ::pread(errors_, text.data(), text.size(), std::max<off_t>(0, length - kMost));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

void Program::fail(const std::string& what) {
  failed_ = true;
  const std::string words = last_words();
  throw std::runtime_error(fmt::format("{} {}{}{}", path_, what, words.empty() ? "" : ": ", words));
}

}  // namespace wherry::bench
