// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/programs/sampler.hpp"

namespace wherry::bench {

std::string Sampler::take(const std::string& job, std::chrono::seconds timeout) {
  const auto deadline = Program::Clock::now() + timeout;
  try {
    if (!program_) program_ = std::make_unique<Program>(command_, deadline);
    version_ = program_->version();
    program_->tell("sample " + job);
    return program_->hear("done", deadline);
  } catch (...) {
    program_.reset();  // With whatever it has started.
    throw;
  }
}

}  // namespace wherry::bench
