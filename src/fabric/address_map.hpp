// SPDX-License-Identifier: Apache-2.0
// What is mapped where in this process, as the kernel knows it. May include: base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/unique_fd.hpp"

namespace wherry::fabric {

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

class AddressMap {
 public:
  AddressMap();
  /// One for whoever needs no own: this process's, also in a forked child.
  static const AddressMap& own();
  /// What is mapped at `address`; none: nothing is. One system call if is_quick(), else as costly as all().
  [[nodiscard]] std::optional<MappedRange> at(std::uintptr_t address) const;
  /// Linux 6.11 and later.
  [[nodiscard]] bool is_quick() const { return is_quick_; }
  /// Everything. Empty without /proc.
  [[nodiscard]] static std::vector<MappedRange> all();

 private:
  UniqueFd maps_;
  bool is_quick_ = false;
};

}  // namespace wherry::fabric
