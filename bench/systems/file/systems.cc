// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/file/systems.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "bench/harness/programs/folders.hpp"
#include "bench/systems/file/child.hpp"

namespace wherry::bench::file {
namespace {

namespace fs = std::filesystem;

using Start = FileSystem::Start;

constexpr const char* kCard = "wherry-bench-file-card";
constexpr const char* kFuse = "wherry-bench-file-fuse";

constexpr std::array kDescriptions{
    FileSystem::Description{"native", "a program's read, write, pread, pwrite, fsync, and the kernel's page cache"},
    FileSystem::Description{"wherry-local",
                            "the same program by wherry run --files, WHERRY_FILE_PATH=kernel: its own calls",
                            "wherry-bench-file", Start::run, "kernel"},
    FileSystem::Description{
        "wherry-comp",
        "the same program by wherry run --files, WHERRY_FILE_PATH=cache: copies from the page cache in place",
        "wherry-bench-file", Start::run, "cache", true},
    FileSystem::Description{"wherry-auto",
                            "the same program by wherry run --files, WHERRY_FILE_PATH=auto: in place where it pays",
                            "wherry-bench-file", Start::run, "auto", true},
    FileSystem::Description{"wherry-host",
                            "a program by a connection to wherry serve in each process; the card has no cache",
                            "wherry-bench-file-host"},
    FileSystem::Description{
        "card-comp",
        "a program by wherry::files, files of wherry serve that it cannot open: every read fills the "
        "card's cache",
        kCard, Start::card, "comp", true},
    FileSystem::Description{"card-os", "the same: each call is the card's process's", kCard, Start::card, "os", true},
    FileSystem::Description{"card-host", "the same: each call is the host's, the cache is not used", kCard, Start::card,
                            "host"},
    FileSystem::Description{"card-auto", "the same with the defaults", kCard, Start::card, "auto", true},
    FileSystem::Description{
        "fuse-cached",
        "the same program on a libfuse file system that passes all on: page cache, write-back, many threads", kFuse,
        Start::fuse, "cached"},
    FileSystem::Description{"fuse-direct", "the same with direct_io: each call is a request; 1024 calls make a pass",
                            kFuse, Start::fuse, "direct", false, 1024},
};

bool has_preload() {
  std::error_code ignored;
  return fs::exists(library_folder() / "files/libwherry-preload.so", ignored);
}

/// Why the program of that system cannot run here; empty: it can.
std::string hindrance(const FileSystem::Description& system, const std::optional<fs::path>& program) {
  const bool fuse = system.start == Start::fuse;
  if (!program) {
    return fuse ? "libfuse was not found; scripts/setup bench installs it, make build then builds the program"
                : "its program is not built; make build does it";
  }
  if (system.start == Start::run && !has_preload()) {
    return "libwherry-preload.so is not in this installation; make install installs it";
  }
  if (!fuse) return {};
  const Child check = start({*program, "check"});
  return reap(check.pid) == 0 ? "" : check.words + "; mounting needs /dev/fuse and the right to mount";
}

/// Of the user's job, so that neither the caches of two systems nor the user's own are one.
std::string job_for(const std::string& path) {
  const char* const job = std::getenv("WHERRY_JOB");
  return std::string(job != nullptr ? job : "bench") + "-" + path;
}

}  // namespace

Outcome FileSystem::run(const Sample& /*sample*/) { throw std::logic_error("asked of jobs only"); }

void FileSystem::start_program(const fs::path& folder) {
  std::vector<std::string> command;
  const std::string job = job_for(description_.name);
  if (description_.start == Start::card) {
    card_.emplace(wherry_program(), job, cache_);
  }
  if (description_.start == Start::run) {
    command = {wherry_program(), "run",  "--no-zmq",    "--no-root",       "--job", job,
               "--files",        folder, "--file-path", description_.path, "--"};
  }
  command.push_back(program_);
  if (description_.start == Start::fuse) command.emplace_back(description_.path);
  if (description_.start == Start::card) {
    command.insert(command.end(), {description_.path, job, std::to_string(card_->pid())});
  }
  sampler_.emplace(std::move(command));
}

Job FileSystem::part_of(Job job) const {
  // The kernel's cache has the file already.
  if (!description_.caches) job.warm_ups = std::min(job.warm_ups, 1U);
  if (description_.calls != 0) job.bytes = std::min(job.bytes, description_.calls * job.unit);
  return job;
}

Finding FileSystem::take(const Job& job, std::chrono::seconds timeout) {
  if (!sampler_) start_program(fs::path(job.files).parent_path());
  return finding_in(sampler_->take(to_line(job), timeout));
}

void add_systems(Registry& registry) {
  for (const auto& one : kDescriptions) {
    const auto program = find_bench_program(one.program, "WHERRY_BENCH_FILE");
    if (std::string why = hindrance(one, program); !why.empty()) {
      registry.missing.push_back({one.name, std::move(why), "file"});
    } else {
      registry.systems.push_back(std::make_unique<FileSystem>(one, *program));
    }
  }
}

}  // namespace wherry::bench::file
