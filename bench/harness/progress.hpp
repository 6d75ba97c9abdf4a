// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wherry::bench {

/// Says on standard error how far it is: on one line of a terminal, else a line now and then.
class Progress {
 public:
  explicit Progress(std::size_t steps);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The next step begins.
  void step(std::string_view what);
  /// One more step than was known of begins.
  void extra_step(std::string_view what);
  /// Steps that will not be taken after all.
  void skip(std::size_t steps);
  /// Takes the line away, so that something else can be printed.
  void clear();

 private:
  [[nodiscard]] std::string text(std::string_view what) const;

  std::size_t steps_;
  std::size_t taken_ = 0;
  std::size_t skipped_ = 0;
  std::uint64_t started_;
  std::uint64_t said_;
  bool terminal_;
};

}  // namespace wherry::bench
