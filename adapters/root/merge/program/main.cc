// SPDX-License-Identifier: Apache-2.0
//
// wherry-merge: receives ROOT files from any number of workers and merges them into one.
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>

#include "adapters/root/merge/commit/shard_names.hpp"
#include "adapters/root/merge/program/options.hpp"
#include "adapters/root/merge/program/report.hpp"
#include "adapters/root/merge/program/serving.hpp"
#include "adapters/root/merge/program/state.hpp"
#include "adapters/root/merge/program/supervisor.hpp"
#include "base/standard_descriptors.hpp"
#include "manual/program.hpp"

namespace {

using wherry::merge::ProgramOptions;
using wherry::merge::State;

constexpr const char* kName = "wherry-merge";
// Limits of --max-file in bytes: those of WindowServer (a unit, 1 TiB).
constexpr std::size_t kLeastMaxFile = std::size_t{2} << 20;
constexpr std::size_t kMostMaxFile = std::size_t{1} << 40;

/// Returns why the output's directory is not writable; empty if it is. Checked at the start, because workers may
/// compute for hours before they write.
std::string check_place(const std::string& output) {
  namespace fs = std::filesystem;
  const fs::path place = fs::is_directory(output) ? fs::path(output) : fs::absolute(output).parent_path();
  if (::access(place.c_str(), W_OK | X_OK) == 0) return "";
  const int error = errno;
  return place.string() + ": " + std::strerror(error);
}

void add_options(CLI::App& app, ProgramOptions& options, std::string& compression, std::size_t& batch_time) {
  app.add_option("listen", options.listen, "Where workers connect: wherry://NODE:PORT, * for this node or a free port")
      ->required();
  app.add_option("-o,--output", options.output,
                 "The file to write, or a directory that gets one file for each name that workers use")
      ->required()
      ->check(check_place);
  app.add_flag("-f,--force", options.force, "Replace an output that exists");
  app.add_option("--workers", options.workers,
                 "End after this many workers have come and gone (default: when all that came have gone)");
  app.add_option("--batch", options.batch, "Maximum number of files per batch; a batch of 32 MiB gets no more files")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  app.add_option("--batch-time", batch_time, "Maximum time in milliseconds that a file waits for others of its batch")
      ->capture_default_str();
  app.add_option("--pool", options.pool, "Memory for the files of all workers, such as 256MiB")
      ->transform(CLI::AsSizeValue(false))
      ->default_str("512MiB");
  app.add_option("--max-file", options.max_file, "The largest file that a worker may write, such as 1GiB")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(kLeastMaxFile, kMostMaxFile))
      ->default_str("1GiB");
  app.add_option("--compression", compression,
                 "auto: baskets are copied as they are, the rest is as in the first file; or a ROOT setting such as "
                 "505, for everything")
      ->capture_default_str();
  app.add_option("--threads", options.threads,
                 "Threads that read the files of a batch; one more thread writes each output")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app.add_option("--file-time", options.file_time,
                 "Maximum time in seconds for reading or merging one file; after that its worker is dropped")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  app.add_option("--shards", options.shards,
                 "Threads that write an output. All but the first write files beside it, which are appended to it in\n"
                 "the end. Each has its own --threads for reading")
      ->capture_default_str()
      ->check(CLI::Range(1U, wherry::merge::kMostShards));
  app.add_flag("--durable", options.durable, "Make every batch survive a power failure, too");
  app.add_flag("--compact", options.compact,
               "Rewrite the output after each batch that leaves more than 4 % of it unused, not only at the end");
  app.add_option("--json", options.json, "Write the summary as JSON to this file; - is standard output");
  app.add_flag("-q,--quiet", options.quiet, "Print no progress, and no summary unless the output is not whole");
  app.footer(
      "After SIGINT or SIGTERM the program merges all files that were handed over, and ends. If it is killed "
      "otherwise,\n"
      "the output ends with the last batch; run the same command again to continue.\n"
      "Exit status: 0 if everything was merged; 1 if an output could not be written; 2 if the command line is wrong;\n"
      "3 if the output is not whole: no worker came, or fewer than --workers; a worker had not finished; a file was\n"
      "refused; or objects could not be added up, such as histograms with different axes.\n"
      "The program reports what is missing. It does not begin an output for which no file came: with --force, the\n"
      "existing file is kept then.");
}

void check(ProgramOptions& options) {
  options.by_name = std::filesystem::is_directory(options.output);
  const std::string objection = options.by_name ? "" : objection_to(options, options.output);
  if (!objection.empty()) throw CLI::ValidationError(objection);
}

// Raises the soft limit: every worker needs four descriptors. The soft limit is low only for programs that use
// select().
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int run(const ProgramOptions& options) {
  raise_descriptor_limit();
  State& state = wherry::merge::make_shared_state();
  const auto begin = std::chrono::steady_clock::now();
  const int status = wherry::merge::supervise(state, [&] {
    try {
      return wherry::merge::serve(options, state);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "wherry-merge: %s\n", error.what());
      return 1;
    }
  });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return wherry::merge::report(options, state, status, seconds.count());
}

}  // namespace

int main(int argc, char** argv) {
  wherry::reserve_standard_descriptors();
  CLI::App app{"Receives ROOT files from any number of workers, through shared memory, and merges them into one.",
               "wherry-merge"};
  ProgramOptions options;
  std::string compression = "auto";
  auto batch_time = static_cast<std::size_t>(options.batch_time.count());
  add_options(app, options, compression, batch_time);
  app.callback([&] {
    options.batch_time = std::chrono::milliseconds(batch_time);
    if (compression != "auto" && !CLI::detail::lexical_cast(compression, options.compression)) {
      throw CLI::ValidationError("--compression must be auto or a number such as 505");
    }
    check(options);
  });
  if (const auto status = wherry::manual::parse(app, kName, argc, argv)) return *status;
  return wherry::manual::run(kName, [&options] { return run(options); });
}
