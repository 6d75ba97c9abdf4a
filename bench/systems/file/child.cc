// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/file/child.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "base/unique_fd.hpp"

namespace wherry::bench::file {
namespace {

[[noreturn]] void become(const std::vector<std::string>& command, int output) {
  ::setpgid(0, 0);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execv(words[0], words.data());
  static constexpr std::string_view kFailed = "cannot run ";
  for (const std::string_view text : {kFailed, std::string_view(command[0])}) {
    (void)!::write(output, text.data(), text.size());
  }
  std::_Exit(127);
}

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

}  // namespace

Child start(const std::vector<std::string>& command) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::system_category(), "pipe");
  const UniqueFd input(ends[0]);
  UniqueFd output(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) throw std::system_error(errno, std::system_category(), "fork");
  if (pid == 0) become(command, output.get());
  output.reset();
  return {pid, read_all(input.get())};
}

int reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace wherry::bench::file
