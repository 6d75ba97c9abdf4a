// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/file/card.hpp"

#include <csignal>
#include <stdexcept>
#include <vector>

#include "bench/systems/file/child.hpp"

namespace wherry::bench::file {

Card::Card(const std::filesystem::path& wherry, const std::string& job, const std::string& cache) {
  std::vector<std::string> command{wherry, "card", "--until-last-client"};
  if (!cache.empty()) command.push_back("--cache=" + cache);
  const Child card = start(command, job);
  pid_ = card.pid;
  // It lets go of its output when it serves.
  if (card.words.empty()) return;
  ::kill(pid_, SIGTERM);
  reap(pid_);
  throw std::runtime_error(card.words);
}

Card::~Card() {
  ::kill(pid_, SIGTERM);
  reap(pid_);
}

}  // namespace wherry::bench::file
