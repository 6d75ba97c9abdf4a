// SPDX-License-Identifier: Apache-2.0
//
// What `wherry bench file` starts for the host's path: the same as wherry-bench-file, but calls go to a server of the
// files' folder by its C++ client.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness/programs/jobs.hpp"
#include "bench/systems/file/program/host_file.hpp"
#include "bench/systems/file/program/run_job.hpp"
#include "bench/systems/file/program/server_process.hpp"

int main() {
  using namespace wherry::bench;
  std::optional<file::ServerProcess> server;
  return answer_jobs("", [&server](const std::string& line) {
    const file::Job job = file::job_in(line);
    // All jobs have their files in one folder.
    if (!server) server.emplace(std::filesystem::path(job.files).parent_path(), file::ServerProcess::Lending::allowed);
    const auto open = [&server](const std::string& path, bool writes) {
      return std::make_unique<file::HostFile>(server->address(), std::filesystem::path(path).filename(), writes);
    };
    return to_line(file::run_job(job, std::vector{server->pid()}, open));
  });
}
