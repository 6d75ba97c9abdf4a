// SPDX-License-Identifier: Apache-2.0
//
// What `wherry bench file` starts for wherry::files: the same as wherry-bench-file, but the calls are those of
// wherry::files. One word, the path: kernel, cache or auto, of files of this machine; or host, of a server of the
// files' folder that this program starts.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_paths.hpp"
#include "bench/harness/programs/jobs.hpp"
#include "bench/systems/file/program/api_file.hpp"
#include "bench/systems/file/program/positioned.hpp"
#include "bench/systems/file/program/run_job.hpp"
#include "bench/systems/file/program/server_process.hpp"

int main(int count, char** words) {
  using namespace wherry::bench;
  namespace fs = std::filesystem;
  using wherry::files::Path;
  const wherry::FilePathWord* const path = count > 1 ? wherry::find_file_path(words[1]) : nullptr;
  if (path == nullptr) {
    fmt::print(stderr, "usage: wherry-bench-file-api kernel|cache|auto|host\n");
    return 2;
  }
  std::optional<file::ServerProcess> server;
  return answer_jobs("", [&](const std::string& line) {
    const file::Job job = file::job_in(line);
    // All jobs have their files in one folder.
    if (path->path == Path::host && !server) server.emplace(fs::path(job.files).parent_path());
    const auto open = [&](const std::string& file, bool writes) {
      const std::string name = server ? server->address() + "/" + fs::path(file).filename().string() : file;
      return std::make_unique<file::Positioned<file::ApiFile>>(name, writes, path->path);
    };
    const std::vector<pid_t> servers = server ? std::vector{server->pid()} : std::vector<pid_t>();
    return to_line(file::run_job(job, servers, open));
  });
}
