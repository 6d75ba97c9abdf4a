// SPDX-License-Identifier: Apache-2.0
#include "bench/questions/root/question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "bench/harness/progress.hpp"
#include "bench/harness/rounds.hpp"
#include "bench/systems/root/systems.hpp"

namespace wherry::bench::root {
namespace {

/// The images of the Higgs tree are as large as the messages of earlier measurements.
constexpr std::uint64_t kHiggsSize = 1'960'000;
constexpr std::uint32_t kMostFiles = 100;
constexpr std::uint32_t kSmokeFiles = 3;
constexpr std::chrono::seconds kJobTimeout{300};

using Entry = Contender<RootSystem, Finding>;

std::string describe(const Job& job) {
  return fmt::format("{}, {} x {} files of {}, {}", word_of(job.figure), job.workers, job.files, size_text(job.size),
                     mode_of(job));
}

std::uint32_t files_for(const Job& job, const Options& options) {
  if (options.root.files > 0) return options.root.files;
  if (options.smoke) return kSmokeFiles;
  const std::uint64_t fit = options.bytes / (job.workers * job.size);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(fit, 1, kMostFiles));
}

std::uint64_t middle_size(const Options& options) { return options.sizes.at(options.sizes.size() / 2); }

/// The stock servers as shipped merge so slowly that they would take most of the time.
bool worth_it(const Options& options, const RootSystem& system, const Job& job) {
  const bool central =
      job.workers == options.senders.at(0) && (job.size == middle_size(options) || job.tree == Tree::higgs);
  return central || job.figure != Figure::merge || !system.merges_slowly() || !options.systems.empty();
}

std::vector<Entry> able(const Options& options, std::span<System* const> systems, const Job& job) {
  std::vector<Entry> entries;
  for (System* system : systems) {
    auto* own = dynamic_cast<RootSystem*>(system);
    if (own != nullptr && own->can(job) && worth_it(options, *own, job)) entries.push_back({own});
  }
  return entries;
}

std::vector<Figure> figures(const Options& options) {
  std::vector<Figure> found;
  for (const std::string& word : options.root.figures) found.push_back(figure_of(word));
  return found.empty() ? std::vector{Figure::transfer, Figure::fill, Figure::merge} : found;
}

bool asks_for(const Options& options, Tree tree) {
  const std::vector<std::string>& trees = options.root.trees;
  if (trees.empty()) return tree == Tree::numbers || !options.smoke;
  return std::find(trees.begin(), trees.end(), word_of(tree)) != trees.end();
}

/// How many workers, with files of which size.
std::vector<Job> shapes(const Options& options) {
  const std::uint64_t size = middle_size(options);
  std::vector<Job> found;
  for (const std::uint32_t workers : options.senders) found.push_back({.workers = workers, .size = size});
  for (const std::uint64_t other : options.sizes) {
    if (other != size) found.push_back({.workers = options.senders.at(0), .size = other});
  }
  return found;
}

}  // namespace

void add_options(CLI::App& command, Options& options) {
  RootOptions& root = options.root;
  command.add_option("--files", root.files, "Files of each worker; default: what --bytes allow, from 1 to 100")
      ->check(CLI::Range(1U, 100'000U));
  command.add_flag("--processes", root.processes, "Workers are processes");
  command.add_flag("--threads", root.threads, "Workers are threads of one process");
  command.add_option("--figures", root.figures, "Of transfer, fill, merge; default: all")
      ->delimiter(',')
      ->check(CLI::IsMember({"transfer", "fill", "merge"}));
  command.add_option("--trees", root.trees, "Of numbers (generated), higgs (merging only); default: both")
      ->delimiter(',')
      ->check(CLI::IsMember({"numbers", "higgs"}));
}

std::string mode_of(const Job& job) {
  return std::string(job.threads ? "threads" : "processes") + (job.tree == Tree::higgs ? "-higgs" : "");
}

std::vector<Job> jobs(const Options& options) {
  const bool neither = !options.root.processes && !options.root.threads;
  std::vector<Job> found;
  const auto add = [&](Job job) {
    job.files = files_for(job, options);
    found.push_back(job);
  };
  for (const Figure figure : figures(options)) {
    for (const bool threads : {false, true}) {
      if (!neither && !(threads ? options.root.threads : options.root.processes)) continue;
      for (Job job : shapes(options)) {
        job.figure = figure;
        job.threads = threads;
        if (asks_for(options, Tree::numbers)) add(job);
        if (threads && neither) break;  // One is enough to see what threads change.
      }
    }
    if (figure != Figure::merge || !asks_for(options, Tree::higgs)) continue;
    const bool threads = options.root.threads && !options.root.processes;
    add({.figure = figure,
         .tree = Tree::higgs,
         .threads = threads,
         .workers = options.senders.at(0),
         .size = kHiggsSize});
  }
  return found;
}

std::vector<Row> measure(const Options& options, std::span<System* const> systems, Circumstances& circumstances) {
  const std::vector<Job> all = jobs(options);
  std::size_t steps = 0;
  for (const Job& job : all) steps += able(options, systems, job).size() * static_cast<std::size_t>(options.samples);
  Progress progress(steps);
  std::mt19937_64 random(options.seed);
  std::vector<Row> rows;
  for (const Job& job : all) {
    std::vector<Entry> entries = able(options, systems, job);
    Rounds(options, "root " + describe(job), progress, circumstances).run(entries, random, [&job](RootSystem& system) {
      return system.take(job, kJobTimeout);
    });
    for (const Entry& entry : entries) {
      Job done = job;
      done.system = entry.system->name();
      if (!entry.failed) append_rows(rows, entry.system->version(), done, entry.findings);
    }
  }
  progress.clear();
  return rows;
}

}  // namespace wherry::bench::root
