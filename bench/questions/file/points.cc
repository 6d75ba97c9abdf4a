// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "bench/questions/file/question.hpp"

namespace wherry::bench::file {
namespace {

/// Of random calls.
constexpr std::uint64_t kPage = 4096;
/// Half of a small L2, so that the buffer stays there: the unit of the seed's program that works in pieces.
constexpr std::uint64_t kPiece = 64 << 10;
constexpr std::uint32_t kMostThreads = 1000;
/// One of the kernel's reads, at the end of which the file is mapped, one that notes what is read again, and one that
/// touches every page of the mapping first.
constexpr std::uint32_t kWarmUps = 3;

bool writes(Figure figure) { return figure >= Figure::write; }
bool is_used(Figure figure) { return figure == Figure::used_read || figure == Figure::used_synced; }
bool asks_for(const Options& options, Figure figure) {
  const std::vector<std::string>& words = options.file.figures;
  const auto has = [&](std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  constexpr std::array kOfTheSeed{Figure::hit, Figure::first, Figure::used_read, Figure::synced, Figure::used_synced};
  const bool of_the_seed = std::find(kOfTheSeed.begin(), kOfTheSeed.end(), figure) != kOfTheSeed.end();
  return words.empty() || has(word_of(figure)) || (has("seed") && of_the_seed);
}

/// The units that a figure has.
std::vector<std::uint64_t> units(const Options& options, Figure figure) {
  if (figure == Figure::random_read || figure == Figure::random_write) return {kPage};
  if (is_used(figure)) {
    return {kPiece, options.bytes / options.senders.at(0) / sizeof(std::uint64_t) * sizeof(std::uint64_t)};
  }
  return options.sizes;
}

/// The unit of a figure that several numbers of processes are measured with; 0: none.
std::uint64_t unit_of_many(const Options& options, Figure figure) {
  if (figure == Figure::random_read || figure == Figure::random_write) return 0;
  return is_used(figure) ? kPiece : options.sizes.at(options.sizes.size() / 2);
}

/// Those that are measured with several numbers of threads, too.
bool has_threads(Figure figure) { return figure == Figure::hit || figure == Figure::write || figure == Figure::synced; }

/// By default.
const std::vector<std::uint32_t> kThreads{1, 2, 8, 48};

std::vector<std::uint32_t> threads_of(const Options& options) {
  const std::vector<std::uint32_t>& asked = options.file.threads;
  return options.smoke && asked == kThreads ? std::vector<std::uint32_t>{2} : asked;
}

}  // namespace

std::string word_of(Figure figure) {
  switch (figure) {
    case Figure::hit:
      return "hit";
    case Figure::first:
      return "first";
    case Figure::cold:
      return "cold";
    case Figure::random_read:
      return "random-read";
    case Figure::used_read:
      return "used-read";
    case Figure::write:
      return "write";
    case Figure::synced:
      return "write-synced";
    case Figure::random_write:
      return "random-write";
    case Figure::used_synced:
      break;
  }
  return "used-write-synced";
}

std::string mode_of(Figure figure, bool threads) { return word_of(figure) + (threads ? "-threads" : ""); }

void add_directory_option(CLI::App& command, Options& options) {
  command
      .add_option("--directory", options.file.directory,
                  "Where the files are made, in a folder that is gone afterwards")
      ->capture_default_str()
      ->check(CLI::ExistingDirectory);
}

void add_options(CLI::App& command, Options& options) {
  std::vector<std::string> words;
  for (const Figure figure : kFigures) words.push_back(word_of(figure));
  words.emplace_back("seed");
  command
      .add_option(
          "--figures", options.file.figures,
          fmt::format("Of {}; seed: those of the published file system, hit, first, used-read, write-synced and "
                      "used-write-synced; default: all",
                      fmt::join(words, ", ")))
      ->delimiter(',')
      ->check(CLI::IsMember(words).description(""));  // the words stand in the text
  add_directory_option(command, options);
  options.file.threads = kThreads;
  command
      .add_option("--threads", options.file.threads,
                  "How many threads of one process, at the middle size, each with a file of its own")
      ->capture_default_str()
      ->delimiter(',')
      ->check(CLI::Range(1U, kMostThreads));
  command.add_flag("--explain", options.file.explain,
                   "Also print to standard error which way wherry-mount-auto chose for each class of transfers, and "
                   "what each way takes, as the last sample's first process had it");
}

std::vector<Point> points(const Options& options) {
  for (const std::uint64_t size : options.sizes) {
    if (size % sizeof(std::uint64_t) != 0)
      throw std::invalid_argument(fmt::format("--sizes: {} is not a multiple of 8", size));
  }
  std::vector<Point> found;
  const auto add = [&](Figure figure, std::uint64_t unit, std::uint32_t processes, bool threads = false) {
    const std::uint64_t bytes = unit > 0 ? options.bytes / processes / unit * unit : 0;
    if (bytes > 0) found.push_back({figure, unit, bytes, processes, threads});
  };
  for (const Figure figure : kFigures) {
    if (!asks_for(options, figure)) continue;
    for (const std::uint64_t unit : units(options, figure)) add(figure, unit, options.senders.at(0));
    const std::uint64_t unit = unit_of_many(options, figure);
    for (std::size_t i = 1; i < options.senders.size(); ++i) add(figure, unit, options.senders[i]);
    for (const std::uint32_t count : threads_of(options)) {
      if (has_threads(figure)) add(figure, unit, count, true);
    }
  }
  if (found.empty()) throw std::invalid_argument("--bytes: a file has less than one unit of --sizes");
  return found;
}

Job job_of(const Point& point, double seconds) {
  const Figure figure = point.figure;
  const bool once = figure == Figure::first || figure == Figure::cold;
  return {.files = fmt::format("{}-{}", writes(figure) ? "out" : "in", point.bytes),
          .writes = writes(figure),
          .random = figure == Figure::random_read || figure == Figure::random_write,
          .used = is_used(figure),
          .synced = figure == Figure::synced || figure == Figure::used_synced,
          .unit = point.unit,
          .bytes = point.bytes,
          .processes = point.processes,
          .threads = point.threads,
          .warm_ups = once             ? 0
                      : writes(figure) ? 1
                                       : kWarmUps,
          .seconds = once ? 0 : seconds};
}

}  // namespace wherry::bench::file
