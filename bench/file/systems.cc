// SPDX-License-Identifier: Apache-2.0
#include "bench/file/systems.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace wherry::bench::file {
namespace {

namespace fs = std::filesystem;

constexpr std::array kDescriptions{
    FileSystem::Description{"native", "a program's read, write, pread, pwrite, fsync, and the kernel's page cache"},
    FileSystem::Description{"wherry-local",
                            "the same program by wherry run --files, WHERRY_FILE_PATH=local: its own calls",
                            "wherry-bench-file", "local"},
    FileSystem::Description{
        "wherry-comp",
        "the same program by wherry run --files, WHERRY_FILE_PATH=comp: every read fills the card's "
        "cache",
        "wherry-bench-file", "comp", true},
    FileSystem::Description{"wherry-auto", "the same program by wherry run --files with its defaults",
                            "wherry-bench-file", "auto", true},
    FileSystem::Description{"wherry-host",
                            "a program by a connection to wherry serve in each process; the card has no cache",
                            "wherry-bench-file-host"},
};

fs::path this_program() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored);
}

bool has_preload() {
  std::error_code ignored;
  return fs::exists(this_program().parent_path().parent_path() / "lib/wherry/files/libwherry-preload.so", ignored);
}

/// Of the user's job, so that neither the caches of two systems nor the user's own are one.
std::string job_for(const std::string& path) {
  const char* const job = std::getenv("WHERRY_JOB");
  return std::string(job != nullptr ? job : "bench") + "-" + path;
}

}  // namespace

Outcome FileSystem::run(const Sample& /*sample*/) { throw std::logic_error("asked of jobs only"); }

void FileSystem::start(const fs::path& folder) {
  if (description_.path == nullptr) {
    sampler_.emplace(std::vector{program_.string()});
    return;
  }
  const std::string job = job_for(description_.path);
  card_.emplace(this_program(), job);
  sampler_.emplace(std::vector<std::string>{this_program(), "run", "--no-zmq", "--no-root", "--job", job, "--files",
                                            folder, "--file-path", description_.path, "--", program_});
}

Finding FileSystem::take(Job job, std::chrono::seconds patience) {
  // The kernel's cache has the file already.
  if (!description_.caches) job.warm_ups = std::min(job.warm_ups, 1U);
  if (!sampler_) start(fs::path(job.files).parent_path());
  return finding_in(sampler_->take(to_line(job), patience));
}

void add_systems(Registry& registry) {
  for (const auto& one : kDescriptions) {
    const auto program = find_bench_program(one.program, "WHERRY_BENCH_FILE");
    if (!program) {
      registry.missing.push_back({one.name, "its program is not built; make build does it", "file"});
    } else if (one.path != nullptr && !has_preload()) {
      registry.missing.push_back(
          {one.name, "libwherry-preload.so is not beside this program; make build builds it", "file"});
    } else {
      registry.systems.push_back(std::make_unique<FileSystem>(one, *program));
    }
  }
}

}  // namespace wherry::bench::file
