// SPDX-License-Identifier: Apache-2.0
//
// Checks memory that a hook must read before the kernel has checked it: a bad pointer must still fail with EFAULT.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wherry::preload {

/// Whether this process can read all these bytes. Asks the kernel about each page, at 0.1 us. Keeps errno.
bool can_read(const void* bytes, std::size_t size) noexcept;

/// The same for strings and lists without a known length. Asks only once about neighbours in one page, so an object of
/// this class serves one call of a hook.
class ProgramMemory {
 public:
  bool can_read(const void* bytes, std::size_t size) noexcept;
  /// Returns the length of a string, or `kUnreadable` if it cannot be read to its end.
  std::size_t length_of(const char* string) noexcept;
  static constexpr std::size_t kUnreadable = SIZE_MAX;

 private:
  static constexpr std::size_t kRemembered = 8;
  std::uintptr_t pages_[kRemembered] = {};  // pages that can be read; 0: unused
  std::size_t next_ = 0;
};

}  // namespace wherry::preload
