// SPDX-License-Identifier: Apache-2.0
// A limit on what an attempt may cost, learned from earlier attempts. A success raises the limit by its cost. A failure
// lowers it by an eighth of the range. One of kPerTrial attempts has the highest limit, so that the limit can rise
// again.
#pragma once

#include <algorithm>
#include <cstdint>

namespace wherry::mpi {

class Effort {
 public:
  Effort(std::int64_t least, std::int64_t most) : least_(least), most_(most), limit_(most) {}

  /// The limit of the attempt that begins or is under way.
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
