// SPDX-License-Identifier: Apache-2.0
// What is mapped where in this process, as the kernel knows it. May include: base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/unique_fd.hpp"

namespace wherry::memory {

/// Which file, across all file systems.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  auto operator<=>(const FileIdentity&) const = default;
};

/// Of an open file. {0, 0} if it cannot be told.
FileIdentity identity_of(int descriptor);

struct MappedRange {
  std::uintptr_t start = 0;
  std::uintptr_t end = 0;
  std::uint64_t offset = 0;  ///< in the file, of `start`
  FileIdentity file;         ///< {0, 0}: none
  int protection = 0;        ///< PROT_ bits
  bool shared = false;

  [[nodiscard]] std::uint64_t offset_of(std::uintptr_t address) const { return offset + (address - start); }
};

/// Of the process that makes it, also in a forked child.
class AddressMap {
 public:
  /// Keeps a descriptor, so that the answers are there when no other is to be had.
  AddressMap();
  /// 0, or the errno value because of which it has no descriptor: each answer then needs one.
  [[nodiscard]] int error() const { return error_; }
  /// One for all callers without one of their own: this process's, also in a forked child.
  static const AddressMap& own();
  /// What is mapped at `address`; none: nothing is. One system call if is_quick(), else as costly as all().
  [[nodiscard]] std::optional<MappedRange> at(std::uintptr_t address) const;
  /// Linux 6.11 and later.
  [[nodiscard]] bool is_quick() const { return is_quick_; }
  /// Everything. None: the kernel does not tell.
  [[nodiscard]] std::optional<std::vector<MappedRange>> all() const;

 private:
  UniqueFd maps_;
  int error_ = 0;
  mutable std::mutex reading_;  ///< of the text: two readers at once would get parts of lines
  bool is_quick_ = false;
};

}  // namespace wherry::memory
