// SPDX-License-Identifier: Apache-2.0
//
// The program that `wherry bench file` starts, natively and by `wherry run --files`. It reads and writes files with the
// C library's calls, and does not link Wherry's library.
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
