// SPDX-License-Identifier: Apache-2.0
//
// What `wherry bench file` starts, natively and by `wherry run --files`: a program that reads and writes files with the
// C library's calls, and has nothing of Wherry in it.
#include <memory>
#include <string>

#include "bench/harness/programs/jobs.hpp"
#include "bench/systems/file/program/kernel_file.hpp"
#include "bench/systems/file/program/run_job.hpp"

int main(int count, char** /*words*/) {
  using namespace wherry::bench;
  return answer_jobs("", [count](const std::string& line) {
    const auto open = [](const std::string& path, bool writes) {
      return std::make_unique<file::KernelFile>(path, writes);
    };
    if (count == 1) return to_line(file::run_job(file::job_in(line), {}, open));
    return to_line(file::run_job(file::job_in(line), {}, [](const std::string& path, bool writes) {
      return std::make_unique<file::PositionedFile>(path, writes);
    }));
  });
}
