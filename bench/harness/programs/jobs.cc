// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/programs/jobs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <iostream>

namespace wherry::bench {
namespace {

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

}  // namespace

int answer_jobs(std::string_view version, const std::function<std::string(const std::string& job)>& take) {
  say(fmt::format("processes {}", ::getpid()));
  say(fmt::format("version {}", version));
  const std::string word = "sample ";
  for (std::string line; std::getline(std::cin, line) && line != "end";) {
    if (!line.starts_with(word)) {
      fmt::print(stderr, "not understood: {}\n", line);
      return 2;
    }
    try {
      say("done " + take(line.substr(word.size())));
    } catch (const std::exception& error) {
      say("failed " + std::string(error.what()));
    }
  }
  return 0;
}

}  // namespace wherry::bench
