// SPDX-License-Identifier: Apache-2.0
//
// What `wherry bench root` starts. It speaks as bench/peers/foreign/README.md says, but for its questions: it is told
// `sample JOB` and says `done FINDING`, or `failed WHY` and goes on.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include <TError.h>
#include <TROOT.h>

#include "base/standard_descriptors.hpp"
#include "bench/root/program/coordinator.hpp"

namespace wherry::bench::root {
namespace {

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

std::string answer(Coordinator& coordinator, const std::string& job) {
  try {
    return "done " + to_line(coordinator.run(job_in(job)));
  } catch (const std::exception& error) {
    return "failed " + std::string(error.what());
  }
}

int run() {
  gROOT->SetBatch();
  gErrorIgnoreLevel = kError;  // The stock server tells of each file.
  const char* folder = std::getenv("TMPDIR");
  Coordinator coordinator(folder != nullptr ? folder : ".");
  say(fmt::format("processes {}", ::getpid()));
  say(fmt::format("version {}", gROOT->GetVersion()));
  const std::string word = "sample ";
  for (std::string line; std::getline(std::cin, line) && line != "end";) {
    if (!line.starts_with(word)) {
      fmt::print(stderr, "not understood: {}\n", line);
      return 2;
    }
    say(answer(coordinator, line.substr(word.size())));
  }
  return 0;
}

}  // namespace
}  // namespace wherry::bench::root

int main() {
  wherry::reserve_standard_descriptors();
  return wherry::bench::root::run();
}
