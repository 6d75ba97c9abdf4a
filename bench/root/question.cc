// SPDX-License-Identifier: Apache-2.0
#include "bench/root/question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <random>

#include "bench/harness/load.hpp"
#include "bench/harness/progress.hpp"
#include "bench/root/systems.hpp"

namespace wherry::bench::root {
namespace {

/// The images of the Higgs tree are as large as the messages of earlier measurements.
constexpr std::uint64_t kHiggsSize = 1'960'000;
constexpr std::uint32_t kMostFiles = 100;
constexpr std::uint32_t kSmokeFiles = 3;
constexpr std::chrono::seconds kPatience{300};
/// How often a sample is taken again because others were busy.
constexpr int kRetakes = 2;

struct Entry {
  RootSystem* system;
  std::vector<Finding> findings{};
  bool failed = false;
};

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

/// The samples of one job: all systems that can take it, in turns.
class Round {
 public:
  Round(const Options& options, const Job& job, Progress& progress, Circumstances& circumstances)
      : options_(options), job_(job), progress_(progress), circumstances_(circumstances) {}

  void run(std::vector<Entry>& entries, std::mt19937_64& random) {
    std::vector<Entry*> turns;
    for (Entry& entry : entries) turns.push_back(&entry);
    for (int i = 0; i < options_.samples; ++i) {
      std::shuffle(turns.begin(), turns.end(), random);
      for (Entry* entry : turns) take(*entry, i);
    }
  }

 private:
  void take(Entry& entry, int number) {
    if (entry.failed) return;
    const std::string system = entry.system->name();
    progress_.step(fmt::format("root {}, {}: sample {} of {}", describe(job_), system, number + 1, options_.samples));
    try {
      entry.findings.push_back(undisturbed(entry));
    } catch (const std::exception& error) {
      entry.failed = true;
      circumstances_.failures.push_back({system, "root " + describe(job_), error.what()});
      progress_.skip(static_cast<std::size_t>(options_.samples - number - 1));
    }
  }

  Finding undisturbed(Entry& entry) {
    for (int retake = 0;; ++retake) {
      const LoadWatch watch;
      const Finding finding = entry.system->take(job_, kPatience);
      const ForeignLoad load = watch.load(finding.reaped_cpu_seconds);
      if (load.disturbing() && retake < kRetakes && !options_.smoke) {
        ++circumstances_.retaken;
        continue;
      }
      circumstances_.worst.busy = std::max(circumstances_.worst.busy, load.busy);
      circumstances_.worst.steal = std::max(circumstances_.worst.steal, load.steal);
      return finding;
    }
  }

  const Options& options_;
  const Job& job_;
  Progress& progress_;
  Circumstances& circumstances_;
};

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
    Round(options, job, progress, circumstances).run(entries, random);
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
