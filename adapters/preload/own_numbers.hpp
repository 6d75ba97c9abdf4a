// SPDX-License-Identifier: Apache-2.0
//
// Descriptors of libwherry-direct.so, which the program does not know.
#pragma once

#include <array>
#include <cstdint>

#include "descriptors.hpp"

namespace wherry::preload {

/// The numbers of all open descriptors, one bit for each.
class OpenNumbers {
 public:
  static OpenNumbers now() noexcept;
  /// Whether the descriptors could be listed.
  explicit operator bool() const { return known_; }
  /// Notes descriptors that are open now and were not then as the library's. Other threads may have opened some of
  /// these; when the program closes those, all connections are closed. Returns false if not all are known, or one has a
  /// number too large to be noted here.
  [[nodiscard]] bool note_new_ones() const noexcept;

 private:
  bool known_ = false;
  unsigned others_ = 0;  ///< numbers from kDescriptors on
  std::array<std::uint64_t, kDescriptors / 64> bits_{};
};

/// While it exists, no file that is opened gets one of the numbers 0 to 2, the program's standard streams.
class StandardNumbersTaken {
 public:
  StandardNumbersTaken() noexcept;
  StandardNumbersTaken(const StandardNumbersTaken&) = delete;
  StandardNumbersTaken& operator=(const StandardNumbersTaken&) = delete;
  ~StandardNumbersTaken();

 private:
  unsigned taken_ = 0;  ///< one bit for each
};

/// Whether a number is one of the library's. It is removed from these.
bool take_own_number(int fd) noexcept;
void forget_own_numbers() noexcept;

}  // namespace wherry::preload
