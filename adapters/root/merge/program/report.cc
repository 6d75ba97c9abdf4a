// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/program/report.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "adapters/root/merge/commit/journal.hpp"
#include "adapters/root/merge/program/worker_names.hpp"
#include "base/printable.hpp"
#include "base/readable.hpp"

namespace wherry::merge {

namespace {

constexpr int kIncomplete = 3;
/// Workers that are printed. The JSON summary has all of them.
constexpr std::size_t kMostLines = 20;

struct Missing {
  const WorkerEntry* worker = nullptr;
  std::string_view how;
};

/// Returns the workers that came and did not finish.
std::vector<Missing> unfinished(const State& state) {
  std::vector<Missing> all;
  const auto add = [&](const WorkerSet& workers, std::string_view how) {
    for (const WorkerEntry& worker : workers) all.push_back({&worker, how});
  };
  add(state.gone, "went without finishing");
  add(state.connected, "had not finished when this ended");
  add(state.missing, "had not come back when this ended");
  return all;
}

/// Returns how many of the workers that --workers expects have never connected. 0 for a run that only completes an
/// interrupted end, which sees no workers.
std::uint64_t never_came(const ProgramOptions& options, const State& state) {
  if (state.end_resumed && state.workers() == 0) return 0;
  return options.workers - std::min<std::uint64_t>(options.workers, state.workers());
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Returns the outputs of this run that still have a journal.
std::vector<std::string> incomplete(const State& state) {
  std::vector<std::string> all;
  state.outputs.each([&](std::string_view output) {
    if (std::filesystem::exists(Journal::path_of(std::string(output)))) all.emplace_back(output);
  });
  return all;
}

nlohmann::json summary_of(const ProgramOptions& options, const State& state, int status, double seconds) {
  auto missing = nlohmann::json::array();
  for (const auto& [worker, how] : unfinished(state)) {
    missing.push_back({{"process", worker->process},
                       {"command", worker->command.data()},
                       {"output", worker->output.data()},
                       {"how", how}});
  }
  auto not_added = nlohmann::json::array();
  state.not_added.each([&](std::string_view name) { not_added.push_back(name); });
  return {{"output", options.output},
          {"whole", status == 0 && is_whole(options, state)},
          {"files", state.files.load()},
          {"bytes", state.bytes.load()},
          {"batches", state.batches.load()},
          {"duplicates", state.duplicates.load()},
          {"refused", state.refused.load()},
          {"workers", state.workers()},
          {"finished", state.finished.load()},
          {"lost_workers", state.lost.load()},
          {"lost_bytes", state.lost_bytes.load()},
          {"missing", missing},
          {"never_came", never_came(options, state)},
          {"not_added", not_added},
          {"incomplete", incomplete(state)},
          {"shards", options.shards},
          {"joined", state.joined.load()},
          {"joined_bytes", state.joined_bytes.load()},
          {"joining_seconds", static_cast<double>(state.joining_time.load()) * 1e-6},
          {"restarts", state.restarts},
          {"stopped", state.stopped.load()},
          {"seconds", seconds},
          {"cpu_seconds", cpu_seconds()}};
}

void write_json(const ProgramOptions& options, const State& state, int status, double seconds) {
  // A path may contain bytes that are not UTF-8: they are replaced.
  constexpr auto kReplaced = nlohmann::json::error_handler_t::replace;
  const std::string text = summary_of(options, state, status, seconds).dump(2, ' ', false, kReplaced) + "\n";
  if (options.json == "-") {
    std::fputs(text.c_str(), stdout);
    return;
  }
  std::ofstream file(options.json);
  file << text << std::flush;
  if (!file) throw std::system_error(errno, std::system_category(), "write " + options.json);
}

void print_summary(const ProgramOptions& options, const State& state, double seconds) {
  fmt::print("{}: {} of {}, {} in {} ({}), {}\n", printable(options.output), counted(state.files, "file"),
             counted(state.workers(), "worker"), human_bytes(state.bytes), human_time(seconds),
             human_rate(state.bytes, seconds), counted(state.batches, "batch"));
  if (state.joined > 0) {
    fmt::print("{} joined, {} in {}\n", counted(state.joined, "shard"), human_bytes(state.joined_bytes),
               human_time(static_cast<double>(state.joining_time.load()) * 1e-6));
  }
  if (state.refused > 0) fmt::print("{} refused\n", counted(state.refused, "file"));
  if (state.lost > 0) {
    fmt::print("{} went without finishing, with {} of unfinished files\n", counted(state.lost, "worker"),
               human_bytes(state.lost_bytes));
  }
}

void say_of(const std::string& output, const std::string& what) {
  fmt::print(stderr, "wherry-merge: {} is not whole: {}\n", printable(output), what);
}

void print_incomplete(const State& state) {
  for (const std::string& output : incomplete(state)) {
    say_of(output, "it was not completed; run the same command again to continue");
  }
}

void print_missing(const ProgramOptions& options, const State& state) {
  const auto say = [&](const std::string& what) { say_of(options.output, what); };
  if (state.end_was_incomplete) say("the process that began to complete it had not seen all workers finish");
  if (state.workers() == 0 && !state.end_resumed) say("no worker came");
  if (state.workers() > 0 && never_came(options, state) > 0) {
    say(fmt::format("{} of {} never came", never_came(options, state), counted(options.workers, "worker")));
  }
  const std::vector<Missing> all = unfinished(state);
  for (std::size_t at = 0; at < std::min(all.size(), kMostLines); ++at) {
    const std::string output = all[at].worker->output.data();
    say_of(output.empty() ? options.output : output, fmt::format("{} {}", describe(*all[at].worker), all[at].how));
  }
  if (all.size() > kMostLines) say(fmt::format("and {} more did not finish", all.size() - kMostLines));
  if (state.refused > 0) say(counted(state.refused, "file") + " refused");
  if (options.by_name) {
    state.refused_of.each([](std::string_view output) { say_of(std::string(output), "a file of it was refused"); });
  }
  state.not_added.each([&](std::string_view name) {
    say(printable(name) + " could not be added up (histograms with different axes, for example); it is incomplete");
  });
  if (state.not_added.is_cut()) say("more objects could not be added up than are listed here");
}

}  // namespace

bool is_whole(const ProgramOptions& options, const State& state) {
  const bool all_came =
      state.end_resumed ? !state.end_was_incomplete : state.finished > 0 && state.finished >= options.workers;
  return all_came && state.refused == 0 && state.lost == 0 && state.present == 0 && state.not_added.empty();
}

int report(const ProgramOptions& options, const State& state, int status, double seconds) {
  const bool whole = status == 0 && is_whole(options, state);
  if (options.json != "-" && (!options.quiet || !whole)) print_summary(options, state, seconds);
  if (status == 0 && !whole) print_missing(options, state);
  if (!whole) print_incomplete(state);
  if (!options.json.empty()) write_json(options, state, status, seconds);
  if (status != 0) return status;
  return whole ? 0 : kIncomplete;
}

}  // namespace wherry::merge
