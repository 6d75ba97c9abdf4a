// SPDX-License-Identifier: Apache-2.0
// The file of layout::FileRevocations: there as long as a card of the user has a segment.
#pragma once

#include <string>

#include "base/unique_fd.hpp"

namespace wherry::file {

/// A card's part of it, from before the card makes its segment until after it has removed it.
class RevocationsFile {
 public:
  /// Finds it beside the segment, or makes it. Where that cannot be, the cards learn of each other's changes by stamps
  /// only, which is logged.
  explicit RevocationsFile(const std::string& segment);
  RevocationsFile(const RevocationsFile&) = delete;
  RevocationsFile& operator=(const RevocationsFile&) = delete;
  /// Removes it, if no other card is there, and no segment.
  ~RevocationsFile();

 private:
  bool take();

  std::string path_;
  UniqueFd file_;  // locked, shared
};

}  // namespace wherry::file
