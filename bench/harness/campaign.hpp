// SPDX-License-Identifier: Apache-2.0
//
// Takes the samples: at each point of a question (a size, a mode, a number of senders) every system is warmed up once,
// which also tells how many messages make a sample of the wanted length; then the systems take turns, in a new random
// order for each round, so that whatever else the machine does meets all of them.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "bench/harness/load.hpp"
#include "bench/harness/options.hpp"
#include "bench/harness/progress.hpp"
#include "bench/harness/report.hpp"
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
};

class Campaign {
 public:
  Campaign(const Options& options, std::vector<System*> systems, std::vector<Point> points,
           LoadMeter meter = load_during);

  /// All rows of all points. Says on standard error how far it is.
  std::vector<Row> run();

  [[nodiscard]] const Circumstances& circumstances() const { return circumstances_; }

 private:
  struct Entry {
    System* system;
    Sample sample;
    std::vector<Outcome> outcomes{};
    bool failed = false;
  };

  void measure(const Point& point, std::vector<Row>& rows);
  void calibrate(Entry& entry, const Point& point);
  void take(Entry& entry, const Point& point, const std::string& what);
  void fail(Entry& entry, const Point& point, const char* reason);

  Options options_;
  std::vector<System*> systems_;
  std::vector<Point> points_;
  LoadMeter meter_;
  Progress progress_;
  std::mt19937_64 random_;
  Circumstances circumstances_;
};

/// "64 KiB, touched, 60 senders"
std::string describe(const Sample& sample);

}  // namespace wherry::bench
