// SPDX-License-Identifier: Apache-2.0
//
// Descriptors that libwherry-direct.so has, of which the program knows nothing.
#pragma once

#include <array>
#include <cstdint>

#include "descriptors.hpp"

namespace wherry::preload {

/// The numbers of all open descriptors, a bit for each.
class OpenNumbers {
 public:
  static OpenNumbers now() noexcept;
  /// Whether they could be looked at.
  explicit operator bool() const { return known_; }
  /// What is open now and was not then is the library's from now on. Other threads may have opened some of that, which
  /// costs the connections when they are closed. False: not all of that is known, or has a number that is noted here.
  [[nodiscard]] bool note_new_ones() const noexcept;

 private:
  bool known_ = false;
  unsigned others_ = 0;  ///< numbers from kDescriptors on
  std::array<std::uint64_t, kDescriptors / 64> bits_{};
};

/// While it exists, nothing that is opened gets one of the numbers 0 to 2: the program's standard streams.
class StandardNumbersTaken {
 public:
  StandardNumbersTaken() noexcept;
  StandardNumbersTaken(const StandardNumbersTaken&) = delete;
  StandardNumbersTaken& operator=(const StandardNumbersTaken&) = delete;
  ~StandardNumbersTaken();

 private:
  unsigned taken_ = 0;  ///< a bit for each
};

/// Whether a number is one of the library's; it is none any more.
bool take_own_number(int fd) noexcept;
void forget_own_numbers() noexcept;

}  // namespace wherry::preload
