// SPDX-License-Identifier: Apache-2.0
// The mappings of this process, as the kernel reports them. May include: base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/unique_fd.hpp"

namespace wherry::memory {

/// Identifies a file across all file systems.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  auto operator<=>(const FileIdentity&) const = default;
};

/// Returns the identity of an open file, or {0, 0} if fstat fails.
FileIdentity identity_of(int descriptor);

struct MappedRange {
  std::uintptr_t start = 0;
  std::uintptr_t end = 0;
  std::uint64_t offset = 0;  ///< of `start` in the file
  FileIdentity file;         ///< {0, 0}: no file
  int protection = 0;        ///< PROT_ bits
  bool shared = false;

  [[nodiscard]] std::uint64_t offset_of(std::uintptr_t address) const { return offset + (address - start); }
};

/// The mappings of the process that constructs it; in a forked child, still those of its parent. Thread-safe.
class AddressMap {
 public:
  /// Keeps a descriptor, so that it also answers when the process has no free descriptor.
  AddressMap();
  /// Returns 0, or the errno value if it could not open its descriptor. Each answer then opens one.
  [[nodiscard]] int error() const { return error_; }
  /// The map of the calling process, shared by all callers. A forked child gets its own.
  static const AddressMap& own();
  /// Returns the mapping at `address`. Empty: there is none, or the kernel does not report it. Costs one system call if
  /// is_quick(), else as much as all().
  [[nodiscard]] std::optional<MappedRange> at(std::uintptr_t address) const;
  /// Whether the kernel answers for a single address (Linux 6.11 and later).
  [[nodiscard]] bool is_quick() const { return is_quick_; }
  /// Returns all mappings, by address. Empty: the kernel does not report them.
  [[nodiscard]] std::optional<std::vector<MappedRange>> all() const;

 private:
  UniqueFd maps_;
  int error_ = 0;
  mutable std::mutex reading_;  ///< held while the text is read: two readers at once would get parts of lines
  bool is_quick_ = false;
};

}  // namespace wherry::memory
