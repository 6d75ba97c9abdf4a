// SPDX-License-Identifier: Apache-2.0
// Captures ROOT's error messages.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace wherry::merge {

/// Warnings about files that are merged nevertheless.
using Messages = std::vector<std::string>;

/// While one exists, ROOT's warnings and errors in this thread are stored here instead of printed. Throws
/// std::runtime_error, out of ROOT, for an error for which ROOT would abort the process, and for the first error after
/// `most`. At most one per thread.
class RootErrors {
 public:
  explicit RootErrors(std::size_t most = std::numeric_limits<std::size_t>::max());
  RootErrors(const RootErrors&) = delete;
  RootErrors& operator=(const RootErrors&) = delete;
  ~RootErrors();

  /// Returns the first error; empty if there was none.
  [[nodiscard]] const std::string& first() const { return first_; }
  /// Returns the number of errors.
  [[nodiscard]] std::size_t count() const { return count_; }
  /// Returns the first 20 different errors and warnings.
  [[nodiscard]] const Messages& messages() const { return messages_; }

 private:
  friend void handle_root_error(int level, bool abort, const char* location, const char* message);
  std::string first_;
  Messages messages_;
  std::size_t count_ = 0;
  std::size_t left_;
};

}  // namespace wherry::merge
