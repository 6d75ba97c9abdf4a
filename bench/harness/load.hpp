// SPDX-License-Identifier: Apache-2.0
// Whether other processes were busy while a sample was taken.
#pragma once

#include <functional>

namespace wherry::bench {

/// Cores' worth of time that others took.
struct ForeignLoad {
  double busy = 0;   ///< processes that are not ours
  double steal = 0;  ///< the hypervisor, for its other guests

  /// More than 15 % of a core: such a sample is taken again.
  [[nodiscard]] bool disturbing() const;
};

/// Watches from its construction on.
class LoadWatch {
 public:
  LoadWatch();
  /// Since then. Time is counted in ticks of 10 ms: over a short time this is rough. `gone` is the CPU seconds of
  /// processes of ours that another process has started and reaped meanwhile: the kernel no longer tells.
  [[nodiscard]] ForeignLoad load(double gone = 0) const;

 private:
  struct Reading {
    double wall = 0;
    double busy = 0;
    double steal = 0;
    double own = 0;
  };
  static Reading now();

  Reading start_;
};

/// Runs `work`; returns the foreign load meanwhile. Tests bring meters of their own: the order of samples depends on
/// it.
using LoadMeter = std::function<ForeignLoad(const std::function<void()>& work)>;

/// By a LoadWatch.
ForeignLoad load_during(const std::function<void()>& work);

}  // namespace wherry::bench
