// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace wherry::bench {

/// The main loop of a program that a Sampler starts. It speaks as bench/systems/programs/README.md says, but for its
/// questions: it is told `sample JOB` and says `done FINDING`, what `take` returns for the job; if that throws, `failed
/// WHY`, and goes on. Returns the program's exit status.
int answer_jobs(std::string_view version, const std::function<std::string(const std::string& job)>& take);

}  // namespace wherry::bench
