// SPDX-License-Identifier: Apache-2.0
// For tests: a system with made-up outcomes.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "bench/harness/system.hpp"

namespace wherry::bench {

class FakeSystem final : public System {
 public:
  FakeSystem(std::string name, std::function<Outcome(const Sample&)> run, bool in_place = false,
             bool prefaulted = false)
      : name_(std::move(name)), run_(std::move(run)), in_place_(in_place), prefaulted_(prefaulted) {}

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string version() const override { return "1.0"; }
  [[nodiscard]] bool can(const Sample& sample) const override { return sample.size != kUnable; }
  [[nodiscard]] bool in_place() const override { return in_place_; }
  [[nodiscard]] bool prefaulted() const override { return prefaulted_; }
  Outcome run(const Sample& sample) override { return run_(sample); }

  /// A size at which it cannot do anything.
  static constexpr std::size_t kUnable = 13;

 private:
  std::string name_;
  std::function<Outcome(const Sample&)> run_;
  bool in_place_;
  bool prefaulted_;
};

}  // namespace wherry::bench
