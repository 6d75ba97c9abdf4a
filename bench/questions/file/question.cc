// SPDX-License-Identifier: Apache-2.0
#include "bench/questions/file/question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <random>
#include <set>

#include "bench/harness/progress.hpp"
#include "bench/harness/rounds.hpp"
#include "bench/questions/file/explanation.hpp"
#include "bench/systems/file/files.hpp"
#include "bench/systems/file/systems.hpp"

namespace wherry::bench::file {
namespace {

constexpr std::chrono::seconds kJobTimeout{300};
/// Passes of a sample where the file has to be made strange to the caches before each.
constexpr int kStrangePasses = 3;

using Entry = Contender<FileSystem, Finding>;

std::string describe(const Point& point) {
  return fmt::format("file {}, units of {}, {} x {}", mode_of(point.figure, point.threads), size_text(point.unit),
                     point.processes, size_text(point.bytes));
}

/// No two checks write the same.
std::uint64_t next_salt() {
  static std::uint64_t last = 0;
  return ++last;
}

/// The samples of one point.
class Samples {
 public:
  Samples(const Options& options, const Point& point, const Files& files)
      : figure_(point.figure),
        job_(job_of(point, options.seconds)),
        passes_(strange() && !options.smoke ? kStrangePasses : 1) {
    job_.files = files.folder() / job_.files;
    files.prepare(job_);
  }

  Finding take(FileSystem& system) {
    const Job job = system.part_of(job_);
    Finding sum;
    if (checked_.insert(&system).second) sum.reaped_cpu_seconds = check(system, job);
    for (int i = 0; i < passes_; ++i) {
      prepare();
      const Finding one = system.take(job, kJobTimeout);
      sum.seconds += one.seconds;
      sum.cpu_seconds += one.cpu_seconds;
      sum.reaped_cpu_seconds += one.reaped_cpu_seconds;
      sum.useful_bytes += one.useful_bytes;
      sum.ways = one.ways;
    }
    // What is left to be written would be written during the next sample.
    if (job_.writes) Files::flush(job_);
    return sum;
  }

 private:
  [[nodiscard]] bool strange() const { return figure_ == Figure::first || figure_ == Figure::cold; }

  void prepare() const {
    if (strange()) Files::touch(job_);
    if (figure_ == Figure::cold) Files::evict(job_);
  }

  /// Every byte, once, in the same circumstances and outside of all samples. Returns the reaped CPU seconds.
  double check(FileSystem& system, Job job) const {
    job.check = true;
    if (job.writes) {
      job.warm_ups = 0;
      job.salt = next_salt();
    }
    prepare();
    const Finding finding = system.take(job, kJobTimeout);
    if (job.writes) Files::compare(job);
    return finding.reaped_cpu_seconds;
  }

  Figure figure_;
  Job job_;
  int passes_;
  std::set<FileSystem*> checked_;
};

/// Whether files lie where something can be cold; if not, why.
std::string keeps_pages(const Files& files) {
  Job job{.files = files.folder() / "cold", .unit = 4096, .bytes = 1 << 20};
  try {
    files.prepare(job);
    Files::evict(job);
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::vector<Point> possible(const Options& options, const Files& files, Circumstances& circumstances) {
  std::vector<Point> all = points(options);
  const auto cold = [](const Point& point) { return point.figure == Figure::cold; };
  if (std::none_of(all.begin(), all.end(), cold)) return all;
  if (std::string why = keeps_pages(files); !why.empty()) {
    circumstances.failures.push_back({"all systems", "file cold", std::move(why)});
    std::erase_if(all, cold);
  }
  return all;
}

}  // namespace

std::vector<Row> measure(const Options& options, std::span<System* const> systems, Circumstances& circumstances) {
  std::vector<FileSystem*> own;
  for (System* system : systems) {
    if (auto* one = dynamic_cast<FileSystem*>(system)) own.push_back(one);
  }
  const Files files(options.file.directory);
  const std::vector<Point> all = possible(options, files, circumstances);
  Progress progress(all.size() * own.size() * static_cast<std::size_t>(options.samples));
  std::mt19937_64 random(options.seed);
  std::vector<Row> rows;
  std::string explained;
  for (const Point& point : all) {
    std::vector<Entry> entries;
    for (FileSystem* system : own) entries.push_back({system});
    Samples samples(options, point, files);
    Rounds(options, describe(point), progress, circumstances).run(entries, random, [&samples](FileSystem& system) {
      return samples.take(system);
    });
    for (const Entry& entry : entries) {
      if (entry.failed) continue;
      append_rows(rows, entry.system->name(), point, entry.findings);
      if (const std::string ways = explain(entry.findings.back().ways); options.file.explain && !ways.empty())
        explained += fmt::format("{}, {}:\n{}", entry.system->name(), describe(point), ways);
    }
  }
  progress.clear();
  fmt::print(stderr, "{}", explained);
  return rows;
}

}  // namespace wherry::bench::file
