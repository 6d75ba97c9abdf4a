// SPDX-License-Identifier: Apache-2.0
//
// Takes the samples: at each point of a question (a size, a mode, a number of senders) every system is warmed up once,
// which also tells how many messages make a sample of the wanted length; then the systems take turns, in a new random
// order for each round, so that whatever else the machine does meets all of them. A sample that others disturbed is
// taken again at once; one that was taken while the host had the two cores placed otherwise than in most of the run, at
// the end of its point, or of the run.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bench/harness/load.hpp"
#include "bench/harness/options.hpp"
#include "bench/harness/placement_watch.hpp"
#include "bench/harness/progress.hpp"
#include "bench/harness/report.hpp"
#include "bench/harness/rows.hpp"
#include "bench/harness/system.hpp"

namespace wherry::bench {

/// One point of a question. The number of messages is the campaign's business.
struct Point {
  std::string bench;
  Sample sample;
};

/// A sample that failed. The system is left out at that point.
struct Failure {
  std::string system;
  std::string point;
  std::string reason;
};

/// How it went.
struct Circumstances {
  std::vector<Failure> failures;
  ForeignLoad worst;        ///< the most that others took during one sample that counted
  std::size_t retaken = 0;  ///< samples taken again because others were busy
  PlacementSummary placement;
};

class Campaign {
 public:
  /// `prober` looks at the cores that the options name; without one no placements are told apart.
  Campaign(const Options& options, std::vector<System*> systems, std::vector<Point> points, Prober prober = {},
           LoadMeter meter = load_during);

  /// All rows of all points. Says on standard error how far it is.
  std::vector<Row> run();

  [[nodiscard]] const Circumstances& circumstances() const { return circumstances_; }

 private:
  /// One sample that counts, unless it is taken again.
  struct Taken {
    Figures figures{};
    PlacementWatch::Around around{};
    int moves = 0;  // Times it was taken again for its placement.
  };
  struct Entry {
    System* system;
    Sample sample;
    std::vector<Taken> taken{};
    bool failed = false;
  };
  /// A point with what was measured there.
  struct Measured {
    const Point* point;
    std::vector<Entry> entries{};
  };

  Measured measure(const Point& point);
  void calibrate(Entry& entry, const Point& point);
  /// Empty if it failed; then its system is left out.
  std::optional<Taken> take(Entry& entry, const Point& point);
  Taken undisturbed(Entry& entry);
  /// Takes again, in turns, what was taken in another placement than most, until the machine is not in that placement
  /// any more and does not return to it before `until_ns` of the monotonic clock.
  void settle(Measured& measured, std::uint64_t until_ns);
  void settle_all(std::vector<Measured>& all, std::uint64_t until_ns);
  void fail(Entry& entry, const Point& point, const char* reason);

  Options options_;
  std::vector<System*> systems_;
  std::vector<Point> points_;
  LoadMeter meter_;
  PlacementWatch placements_;
  Progress progress_;
  std::mt19937_64 random_;
  Circumstances circumstances_;
};

/// "64 KiB, touched, 60 senders"
std::string describe(const Sample& sample);

}  // namespace wherry::bench
