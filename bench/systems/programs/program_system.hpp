// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "bench/harness/programs/program.hpp"
#include "bench/harness/system.hpp"
#include "bench/systems/programs/description.hpp"

namespace wherry::bench {

/// A peer that is a program of its own, in any language. It stays from sample to sample, as long as the number of
/// senders and the cores are the same, and stands still in between: launchers and Java machines take seconds to start.
class ForeignSystem : public System {
 public:
  explicit ForeignSystem(Description description) : description_(std::move(description)) {}

  [[nodiscard]] std::string name() const override { return description_.name; }
  /// What the program said when it ran for the first time.
  [[nodiscard]] std::string version() const override { return version_; }
  [[nodiscard]] std::string settings() const override { return description_.settings; }
  [[nodiscard]] std::string question() const override { return description_.question; }
  [[nodiscard]] bool can(const Sample& sample) const override;
  [[nodiscard]] bool in_place() const override { return description_.in_place; }
  Outcome run(const Sample& sample) override;

 private:
  Program& program_for(const Sample& sample, Program::Clock::time_point deadline);

  Description description_;
  std::string version_;
  std::unique_ptr<Program> program_;
  std::string shape_;
};

}  // namespace wherry::bench
