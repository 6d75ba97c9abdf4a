// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace wherry::merge {

/// Warnings about files that are merged all the same.
using Messages = std::vector<std::string>;

/// While one exists, what ROOT reports in this thread as a warning or an error is kept here instead of being printed,
/// and what ROOT would abort the process for is thrown (std::runtime_error); so is the error after `most`. Not nested.
class RootErrors {
 public:
  explicit RootErrors(std::size_t most = std::numeric_limits<std::size_t>::max());
  RootErrors(const RootErrors&) = delete;
  RootErrors& operator=(const RootErrors&) = delete;
  ~RootErrors();

  /// The first error, empty if there was none.
  [[nodiscard]] const std::string& first() const { return first_; }
  [[nodiscard]] std::size_t count() const { return count_; }
  /// The first few errors and warnings, each once.
  [[nodiscard]] const Messages& messages() const { return messages_; }

 private:
  friend void handle_root_error(int level, bool abort, const char* location, const char* message);
  std::string first_;
  Messages messages_;
  std::size_t count_ = 0;
  std::size_t left_;
};

}  // namespace wherry::merge
