// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/unique_fd.hpp"
#include "file/server/write_delegation.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// What a server does with a file or directory that a client has open. Of one thread at a time; blocks as the file
/// system does. Calls that return ssize_t return -1 and errno as the kernel's do, others 0 or an errno value. Changes
/// are ESTALE once a client that had the file delegated for writing was cut off.
class Backing {
 public:
  explicit Backing(UniqueFd descriptor) : descriptor_(std::move(descriptor)) {}
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;
  ~Backing() { set_delegation(nullptr); }

  /// Fewer bytes than there is room for: the end of the file.
  [[nodiscard]] ssize_t read(std::span<const iovec> into, std::uint64_t offset);
  [[nodiscard]] ssize_t write(std::span<const iovec> from, std::uint64_t offset);
  /// The same of a delegated file that was opened for appends: no append comes in between.
  [[nodiscard]] ssize_t write_before_end(std::span<const iovec> from, std::uint64_t offset);
  /// Whether that is allowed: not where the file's attributes forbid it (chattr +a).
  [[nodiscard]] bool may_write_before_end() const;
  /// One write at the end of a file that was opened for that.
  [[nodiscard]] ssize_t append(std::span<const std::byte> data);
  /// As copy_file_range: 0 at the end of this file.
  [[nodiscard]] ssize_t copy(std::uint64_t offset, const Backing& to, std::uint64_t to_offset, std::size_t bytes);
  [[nodiscard]] int flush(bool data_only);
  [[nodiscard]] int status(layout::FileStatus& status);
  [[nodiscard]] int set_size(std::uint64_t size);
  /// What a write by others than root does to set-user-ID and set-group-ID bits.
  /// @param mode  that the file has
  /// @param by  kFileWriteBy...
  void drop_set_id(std::uint32_t mode, std::uint32_t by) const;
  /// `mode` as fallocate's.
  [[nodiscard]] int allocate(int mode, std::uint64_t offset, std::uint64_t length);
  /// Ends the one that was.
  void set_delegation(std::shared_ptr<WriteDelegation> delegation);
  /// Null: the file is not delegated for writing.
  [[nodiscard]] WriteDelegation* delegation() const { return delegation_.get(); }
  /// What close(2) says. Nothing may follow.
  int close();
  /// For all other calls.
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }

 private:
  UniqueFd descriptor_;
  std::shared_ptr<WriteDelegation> delegation_{};
};

}  // namespace wherry::file
