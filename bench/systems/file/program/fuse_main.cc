// SPDX-License-Identifier: Apache-2.0
//
// What `wherry bench file` starts for FUSE: the same as wherry-bench-file, but over the files' folder a file system of
// FUSE is mounted that passes all on to it. One word: cached, through, direct; or check: exit status 0 if mounting is
// permitted, else 1 and why not.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness/programs/jobs.hpp"
#include "bench/systems/file/program/fuse_process.hpp"
#include "bench/systems/file/program/kernel_file.hpp"
#include "bench/systems/file/program/run_job.hpp"

namespace {

using namespace wherry::bench;

int check() {
  try {
    const file::FuseProcess files("/tmp", file::Passthrough::Cache::none);
    return 0;
  } catch (const std::exception& error) {
    fmt::print("{}\n", error.what());
    return 1;
  }
}

}  // namespace

int main(int count, char** words) {
  const std::string how = count > 1 ? words[1] : "";
  if (how == "check") return check();
  using Cache = file::Passthrough::Cache;
  const std::map<std::string, Cache> known{
      {"cached", Cache::kernel}, {"through", Cache::through}, {"direct", Cache::none}};
  const auto cache = known.find(how);
  if (cache == known.end()) {
    fmt::print(stderr, "usage: wherry-bench-file-fuse cached|through|direct|check\n");
    return 2;
  }
  std::optional<file::FuseProcess> files;
  return answer_jobs(file::Passthrough::version(), [&](const std::string& line) {
    const file::Job job = file::job_in(line);
    // All jobs have their files in one folder.
    if (!files) files.emplace(std::filesystem::path(job.files).parent_path(), cache->second);
    const auto open = [](const std::string& path, bool writes) {
      return std::make_unique<file::KernelFile>(path, writes);
    };
    return to_line(file::run_job(job, std::vector{files->pid()}, open));
  });
}
