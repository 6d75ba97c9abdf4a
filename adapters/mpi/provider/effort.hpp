// SPDX-License-Identifier: Apache-2.0
// How much is spent on something that may be in vain. Attempts that succeed raise the limit by what they took, and each
// that uses it up lowers it by an eighth of the range. One attempt of kPerTrial has the highest limit, so that a low
// one is not for ever.
#pragma once

#include <algorithm>
#include <cstdint>

namespace wherry::mpi {

class Effort {
 public:
  Effort(std::int64_t least, std::int64_t most) : least_(least), most_(most), limit_(most) {}

  /// Of the attempt that begins or is under way.
  [[nodiscard]] std::int64_t limit() const { return attempts_ % kPerTrial == 0 ? most_ : limit_; }
  void succeeded(std::int64_t spent) {
    ++attempts_;
    limit_ = std::min(most_, limit_ + spent);
  }
  void failed() {
    ++attempts_;
    limit_ = std::max(least_, limit_ - (most_ - least_ + 7) / 8);
  }

 private:
  static constexpr unsigned kPerTrial = 32;

  std::int64_t least_;
  std::int64_t most_;
  std::int64_t limit_;
  unsigned attempts_ = 0;
};

}  // namespace wherry::mpi
