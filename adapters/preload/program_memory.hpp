// SPDX-License-Identifier: Apache-2.0
//
// Memory that a hook has to read before the kernel has judged it: a bad pointer must stay EFAULT.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wherry::preload {

/// True if this process can read all these bytes. Asks the kernel about each page, 0.1 us for one. Keeps errno.
bool can_read(const void* bytes, std::size_t size) noexcept;

/// The same for strings and lists without a known length. Asks once about neighbours in one page, so an object of this
/// class is for one call of a hook.
class ProgramMemory {
 public:
  bool can_read(const void* bytes, std::size_t size) noexcept;
  /// The length of a string; `kUnreadable`: its end cannot be reached.
  std::size_t length_of(const char* string) noexcept;
  static constexpr std::size_t kUnreadable = SIZE_MAX;

 private:
  static constexpr std::size_t kRemembered = 8;
  std::uintptr_t pages_[kRemembered] = {};  // that can be read; 0: none
  std::size_t next_ = 0;
};

}  // namespace wherry::preload
