// SPDX-License-Identifier: Apache-2.0
#include "bench/file/card.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include "base/unique_fd.hpp"

namespace wherry::bench::file {
namespace {

[[noreturn]] void become(const std::string& wherry, const std::string& job, int output) {
  ::setpgid(0, 0);  // A terminal's ^C reaches `wherry bench`, which ends the card after its clients.
  ::setenv("WHERRY_JOB", job.c_str(), 1);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execl(wherry.c_str(), wherry.c_str(), "card", "--until-last-client", nullptr);
  static constexpr std::string_view kFailed = "cannot run wherry card";
  (void)!::write(output, kFailed.data(), kFailed.size());
  std::_Exit(127);
}

/// All that is written there, until nobody has the other end: the card lets go of it when it serves.
std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 1000> bytes{};
  for (ssize_t got = 0; (got = ::read(descriptor, bytes.data(), bytes.size())) != 0;) {
    if (got > 0) text.append(bytes.data(), static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

void reap(pid_t pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
}

}  // namespace

Card::Card(const std::filesystem::path& wherry, const std::string& job) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::system_category(), "pipe");
  const UniqueFd input(ends[0]);
  UniqueFd output(ends[1]);
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::system_category(), "fork");
  if (pid_ == 0) become(wherry, job, output.get());
  output.reset();
  const std::string words = read_all(input.get());
  if (words.empty()) return;
  ::kill(pid_, SIGTERM);
  reap(pid_);
  throw std::runtime_error(words);
}

Card::~Card() {
  ::kill(pid_, SIGTERM);
  reap(pid_);
}

}  // namespace wherry::bench::file
