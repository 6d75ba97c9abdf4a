// SPDX-License-Identifier: Apache-2.0
//
// What `wherry bench root` starts.
#include <cstdlib>
#include <string>

#include <TError.h>
#include <TROOT.h>

#include "base/standard_descriptors.hpp"
#include "bench/harness/programs/jobs.hpp"
#include "bench/systems/root/program/coordinator.hpp"

namespace wherry::bench::root {
namespace {

int run() {
  gROOT->SetBatch();
  gErrorIgnoreLevel = kError;  // The stock server tells of each file.
  const char* folder = std::getenv("TMPDIR");
  Coordinator coordinator(folder != nullptr ? folder : ".");
  return answer_jobs(gROOT->GetVersion(),
                     [&coordinator](const std::string& job) { return to_line(coordinator.run(job_in(job))); });
}

}  // namespace
}  // namespace wherry::bench::root

int main() {
  wherry::reserve_standard_descriptors();
  return wherry::bench::root::run();
}
