// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/file/systems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "bench/harness/programs/folders.hpp"
#include "bench/systems/file/child.hpp"

namespace wherry::bench::file {
namespace {

namespace fs = std::filesystem;

using Start = FileSystem::Start;

constexpr const char* kPlain = "wherry-bench-file";
constexpr const char* kApi = "wherry-bench-file-api";
constexpr const char* kFuse = "wherry-bench-file-fuse";
constexpr const char* kMount = "wherry-bench-file-mount";

constexpr const char* kSshfs = "--sshfs";

constexpr std::array kDescriptions{
    FileSystem::Description{"native", "a program's read, write, pread, pwrite, fsync, and the kernel's page cache"},
    FileSystem::Description{
        "two-copies",
        "a simple transfer by shared memory: a thread moves the data between the file and a ring, the "
        "program between the ring and its buffer, at the same time",
        kPlain, Start::plain, "two-copies"},
    FileSystem::Description{"wherry-run-kernel",
                            "the same program by wherry run --files, WHERRY_FILE_PATH=kernel: its own calls", kPlain,
                            Start::run, "kernel"},
    FileSystem::Description{
        "wherry-run-cache",
        "the same program by wherry run --files, WHERRY_FILE_PATH=cache: copies from the page cache in place", kPlain,
        Start::run, "cache", true},
    FileSystem::Description{"wherry-run-auto",
                            "the same program by wherry run --files, WHERRY_FILE_PATH=auto: in place where it pays",
                            kPlain, Start::run, "auto", true},
    FileSystem::Description{"wherry-api-kernel", "a program by wherry::files, path kernel: the kernel's calls", kApi,
                            Start::api, "kernel"},
    FileSystem::Description{"wherry-api-cache",
                            "a program by wherry::files, path cache: copies from the page cache in place", kApi,
                            Start::api, "cache", true},
    FileSystem::Description{"wherry-api-auto", "a program by wherry::files, path auto: in place where it pays", kApi,
                            Start::api, "auto", true},
    FileSystem::Description{"wherry-api-host", "a program by wherry::files, path host: files of wherry serve", kApi,
                            Start::api, "host"},
    FileSystem::Description{"wherry-mount", "the same program on a wherry mount of the folder", kMount, Start::mount,
                            ""},
    FileSystem::Description{"wherry-mount-run",
                            "the same by wherry run --files: copies from the page cache in place where it pays", kMount,
                            Start::mount, "run", true},
    FileSystem::Description{"wherry-mount-requests", "the same as wherry-mount with --no-passthrough", kMount,
                            Start::mount, "--no-passthrough"},
    FileSystem::Description{"wherry-mount-card",
                            "the same by pread and pwrite alone, with wherry serve --no-lend: what misses the card's "
                            "memory is a request to its "
                            "daemon, and from there to the server",
                            kMount, Start::mount, "card"},
    FileSystem::Description{"wherry-mount-cache",
                            "the same by wherry run --files, WHERRY_FILE_PATH=cache: small writes without system calls",
                            kMount, Start::mount, "cache"},
    FileSystem::Description{"wherry-mount-host",
                            "the same by wherry run --files, WHERRY_FILE_PATH=host: past the mount, to the server",
                            kMount, Start::mount, "host"},
    FileSystem::Description{"wherry-mount-auto",
                            "the same by wherry run --files, WHERRY_FILE_PATH=auto: past the mount where it pays",
                            kMount, Start::mount, "auto"},
    FileSystem::Description{"sshfs",
                            "the same program on sshfs, with OpenSSH's sftp-server at the other end of a pair of "
                            "sockets: no encryption, no network",
                            kMount, Start::mount, kSshfs},
    FileSystem::Description{
        "fuse-cached",
        "the same program on a libfuse file system that passes all on: page cache, write-back, many threads", kFuse,
        Start::fuse, "cached"},
    FileSystem::Description{"fuse-through", "the same without write-back: each write is a request", kFuse, Start::fuse,
                            "through"},
    FileSystem::Description{"fuse-direct", "the same with direct_io: each call is a request; 1024 calls make a pass",
                            kFuse, Start::fuse, "direct", false, 1024},
};

bool has_preload() {
  std::error_code ignored;
  return fs::exists(library_folder() / "files/libwherry-preload.so", ignored);
}

/// Why the program of that system cannot run here; empty: it can.
std::string hindrance(const FileSystem::Description& system, const std::optional<fs::path>& program) {
  const bool fuse = system.start == Start::fuse || system.start == Start::mount;
  if (!program) {
    return fuse ? "libfuse was not found; scripts/setup bench installs it, make build then builds the program"
                : "its program is not built; make build does it";
  }
  const std::string_view path = system.path;
  const bool by_run = path == "run" || path == "cache" || path == "host" || path == "auto";
  if ((system.start == Start::run || (system.start == Start::mount && by_run)) && !has_preload()) {
    return "libwherry-preload.so is not in this installation; make install installs it";
  }
  if (!fuse) return {};
  std::vector<std::string> command{*program, "check"};
  if (path == kSshfs) command.emplace_back(path);
  const Child check = start(command);
  return reap(check.pid) == 0 ? "" : check.words + "; mounting needs /dev/fuse and the right to mount";
}

}  // namespace

std::string nfs_hindrance(const fs::path& file_systems) {
  std::ifstream words(file_systems);
  const std::istream_iterator<std::string> end;
  const auto is_nfs = [](const std::string& word) { return word == "nfs" || word == "nfs4"; };
  if (std::none_of(std::istream_iterator<std::string>(words), end, is_nfs)) {
    return fmt::format("this kernel does not have it ({}); modprobe nfs loads it where it is a module",
                       file_systems.string());
  }
  return "mount one, and measure --systems native with --directory on it";
}

std::vector<std::string> FileSystem::command_for(const fs::path& folder) const {
  const auto by_run = [&](const std::string& path, const fs::path& program) {
    return std::vector<std::string>{wherry_program(), "run",         "--no-zmq", "--no-root", "--files",
                                    folder,           "--file-path", path,       "--",        program};
  };
  if (description_.start == Start::run) return by_run(description_.path, program_);
  std::vector<std::string> command{program_};
  const std::string path = description_.path;
  if (description_.start != Start::mount) {
    if (!path.empty()) command.push_back(path);
    return command;
  }
  command.insert(command.end(), {wherry_program(), folder});
  const bool has_path = path == "cache" || path == "host" || path == "auto";
  if (path.starts_with("--")) command.push_back(path);
  if (has_path || path == "card") command.insert(command.end(), {"--no-lend", "--no-passthrough"});
  command.emplace_back("--");
  const fs::path plain = program_.parent_path() / kPlain;
  const auto rest = has_path        ? by_run(path, plain)
                    : path == "run" ? by_run("auto", plain)
                                    : std::vector<std::string>{plain};
  command.insert(command.end(), rest.begin(), rest.end());
  if (has_path || path == "card") command.emplace_back("pread");
  return command;
}

Outcome FileSystem::run(const Sample& /*sample*/) { throw std::logic_error("asked of jobs only"); }

void FileSystem::start_program(const fs::path& folder) { sampler_.emplace(command_for(folder)); }

Job FileSystem::part_of(Job job) const {
  // The kernel's cache has the file already.
  if (!description_.maps) job.warm_ups = std::min(job.warm_ups, 1U);
  if (description_.calls != 0) job.bytes = std::min(job.bytes, description_.calls * job.unit);
  return job;
}

Finding FileSystem::take(const Job& job, std::chrono::seconds timeout) {
  if (!sampler_) start_program(fs::path(job.files).parent_path());
  return finding_in(sampler_->take(to_line(job), timeout));
}

void add_systems(Registry& registry) {
  registry.missing.push_back({"nfs", nfs_hindrance("/proc/filesystems"), "file"});
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
