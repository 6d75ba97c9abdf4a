// SPDX-License-Identifier: Apache-2.0
//
// The program that `wherry bench file` starts, natively and by `wherry run --files`. It reads and writes files with the
// C library's calls, and does not link Wherry's library. One word may say by which: pread, which only uses pread and
// pwrite; or two-copies, which moves all data twice.
#include <memory>
#include <string>
#include <string_view>

#include "bench/harness/programs/jobs.hpp"
#include "bench/systems/file/program/kernel_file.hpp"
#include "bench/systems/file/program/positioned.hpp"
#include "bench/systems/file/program/run_job.hpp"
#include "bench/systems/file/program/two_copies.hpp"

namespace {

template <class File>
int answer() {
  using namespace wherry::bench;
  return answer_jobs("", [](const std::string& line) {
    return to_line(file::run_job(file::job_in(line), {}, [](const std::string& path, bool writes) {
      return std::make_unique<File>(path, writes);
    }));
  });
}

}  // namespace

int main(int count, char** words) {
  using namespace wherry::bench::file;
  // The last word names this run.
  const std::string_view calls = count > 1 ? words[1] : "";
  if (calls == "pread") return answer<Positioned<KernelFile>>();
  if (calls == "two-copies") return answer<Positioned<TwoCopies>>();
  return answer<KernelFile>();
}
