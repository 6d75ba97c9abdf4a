// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <string>

namespace wherry::merge {

/// While one exists, what ROOT reports as an error in this thread is kept here instead of being printed, and what ROOT
/// would abort the process for is thrown (std::runtime_error); so is the error after `most`. Not nested.
class RootErrors {
 public:
  explicit RootErrors(std::size_t most = std::numeric_limits<std::size_t>::max());
  RootErrors(const RootErrors&) = delete;
  RootErrors& operator=(const RootErrors&) = delete;
  ~RootErrors();

  /// The first one, empty if there was none.
  [[nodiscard]] const std::string& first() const { return first_; }

 private:
  friend void handle_root_error(int level, bool abort, const char* location, const char* message);
  std::string first_;
  std::size_t left_;
};

}  // namespace wherry::merge
