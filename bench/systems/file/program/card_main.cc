// SPDX-License-Identifier: Apache-2.0
//
// What `wherry bench file` starts for a card that cannot open the files itself: the same as wherry-bench-file, but
// calls go to a server of the files' folder by wherry::files. Three words: the path; the job that has
// the card; and the process of that card, for its CPU time.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/harness/programs/jobs.hpp"
#include "bench/systems/file/program/card_file.hpp"
#include "bench/systems/file/program/run_job.hpp"
#include "bench/systems/file/program/server_process.hpp"
#include "file/process_cache.hpp"

namespace {

using wherry::files::Choices;
using wherry::files::Path;
using wherry::files::Reason;

std::optional<Path> path_named(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, Path>, 4> kNames{
      std::pair{"auto", Path::automatic}, {"comp", Path::comp}, {"os", Path::os}, {"host", Path::host}};
  for (const auto& [word, path] : kNames) {
    if (word == name) return path;
  }
  return std::nullopt;
}

constexpr std::size_t index_of(Path path, Reason reason) {
  return static_cast<std::size_t>(path) * wherry::files::kReasons + static_cast<std::size_t>(reason);
}

/// What wherry::files counts.
wherry::bench::file::Counters choices() {
  static constexpr std::array kPaths{"auto", "local", "comp", "os", "host"};
  static constexpr std::array kReasons{"asked", "hit", "cheaper", "again", "explored", "uncached"};
  static_assert(kPaths.size() == wherry::files::kPaths && kReasons.size() == wherry::files::kReasons);
  std::vector<std::string> names;
  for (const char* path : kPaths) {
    for (const char* reason : kReasons) names.push_back(fmt::format("{}, {}", path, reason));
  }
  return {std::move(names), [](std::span<std::uint64_t> counts) {
            const Choices now = wherry::files::choices();
            for (std::size_t i = 0; i < counts.size(); ++i)
              counts[i] = now.calls[i / kReasons.size()][i % kReasons.size()];
            // A hit costs so little that nothing but the cache counts it.
            counts[index_of(Path::comp, Reason::hit)] = wherry::file::process_cache(false).counts().hits;
          }};
}

}  // namespace

int main(int count, char** words) {
  using namespace wherry::bench;
  const std::optional<Path> path = count > 3 ? path_named(words[1]) : std::nullopt;
  if (!path) {
    fmt::print(stderr, "usage: wherry-bench-file-card auto|comp|os|host JOB PROCESS\n");
    return 2;
  }
  ::setenv("WHERRY_JOB", words[2], 1);
  // A client of the card's for as long as the program runs: without one the card ends, which may be between two
  // samples.
  wherry::file::process_cache(false);
  const pid_t card = std::atoi(words[3]);
  std::optional<file::ServerProcess> server;
  return answer_jobs("", [&](const std::string& line) {
    const file::Job job = file::job_in(line);
    // All jobs have their files in one folder.
    if (!server) {
      server.emplace(std::filesystem::path(job.files).parent_path(), file::ServerProcess::Lending::forbidden);
    }
    const auto open = [&](const std::string& name, bool writes) {
      const std::string file = std::filesystem::path(name).filename();
      return std::make_unique<file::CardFile>(server->address() + "/" + file, writes, *path);
    };
    return to_line(file::run_job(job, std::vector{server->pid(), card}, open, choices()));
  });
}
