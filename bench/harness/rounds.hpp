// SPDX-License-Identifier: Apache-2.0
// The samples of a question that has findings of its own kind: at each point all systems that can take it do so in
// turns, in a new random order for each round. A sample that others disturbed is taken again at once; a system that
// fails is left out at that point.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/campaign.hpp"
#include "bench/harness/load.hpp"
#include "bench/harness/options.hpp"
#include "bench/harness/progress.hpp"

namespace wherry::bench {

/// A system at one point, and what it found there.
template <class System, class Finding>
struct Contender {
  System* system;
  std::vector<Finding> findings{};
  bool failed = false;
};

class Rounds {
 public:
  /// `point` is what progress and failures call it, such as "root merge, 4 workers". All must outlive the rounds.
  Rounds(const Options& options, std::string point, Progress& progress, Circumstances& circumstances)
      : options_(options), point_(std::move(point)), progress_(progress), circumstances_(circumstances) {}

  /// `take(system)` takes one sample. A Finding has `reaped_cpu_seconds`: of processes of the sample that the kernel no
  /// longer tells of. A step of the progress for each sample.
  template <class System, class Finding, class Take>
  void run(std::vector<Contender<System, Finding>>& contenders, std::mt19937_64& random, const Take& take) {
    std::vector<Contender<System, Finding>*> turns;
    for (auto& contender : contenders) turns.push_back(&contender);
    for (int i = 0; i < options_.samples; ++i) {
      std::shuffle(turns.begin(), turns.end(), random);
      for (auto* contender : turns) sample(*contender, i, take);
    }
  }

 private:
  /// How often a sample is taken again because others were busy.
  static constexpr int kRetakes = 2;

  template <class System, class Finding, class Take>
  void sample(Contender<System, Finding>& contender, int number, const Take& take) {
    if (contender.failed) return;
    const std::string name = contender.system->name();
    progress_.step(fmt::format("{}, {}: sample {} of {}", point_, name, number + 1, options_.samples));
    try {
      contender.findings.push_back(undisturbed(*contender.system, take));
    } catch (const std::exception& error) {
      contender.failed = true;
      circumstances_.failures.push_back({name, point_, error.what()});
      progress_.skip(static_cast<std::size_t>(options_.samples - number - 1));
    }
  }

  template <class System, class Take>
  auto undisturbed(System& system, const Take& take) {
    for (int retake = 0;; ++retake) {
      const LoadWatch watch;
      auto finding = take(system);
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
  std::string point_;
  Progress& progress_;
  Circumstances& circumstances_;
};

}  // namespace wherry::bench
