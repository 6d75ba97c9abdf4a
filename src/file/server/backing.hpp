// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/unique_fd.hpp"
#include "file/in_place/in_place_reader.hpp"
#include "file/server/write_delegation.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// A file or directory that a client has open at the server. One thread at a time; blocks as the file system does.
/// Calls that return ssize_t return -1 and errno as the kernel's calls do; others return 0 or an errno value. Changes
/// return ESTALE once the client's write delegation was cut off.
class Backing {
 public:
  explicit Backing(UniqueFd descriptor) : descriptor_(std::move(descriptor)) {}
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;
  ~Backing() { set_delegation(nullptr); }

  /// Returns fewer bytes than requested only at the end of the file. Copies from the page cache what is read
  /// repeatedly.
  [[nodiscard]] ssize_t read(std::span<const iovec> into, std::uint64_t offset);
  [[nodiscard]] ssize_t write(std::span<const iovec> from, std::uint64_t offset);
  /// As `write`, for a delegated file that was opened with O_APPEND. The delegation excludes appends by others.
  [[nodiscard]] ssize_t write_before_end(std::span<const iovec> from, std::uint64_t offset);
  /// Whether `write_before_end` is allowed: not if the file's attributes forbid it (chattr +a).
  [[nodiscard]] bool may_write_before_end() const;
  /// One write at the end of a file that was opened with O_APPEND.
  [[nodiscard]] ssize_t append(std::span<const std::byte> data);
  /// As copy_file_range: 0 at the end of this file.
  [[nodiscard]] ssize_t copy(std::uint64_t offset, const Backing& to, std::uint64_t to_offset, std::size_t bytes);
  [[nodiscard]] int flush(bool data_only);
  [[nodiscard]] int status(layout::FileStatus& status);
  [[nodiscard]] int set_size(std::uint64_t size);
  /// Drops set-user-ID and set-group-ID bits, as a write by a user other than root does.
  /// @param mode  the file's current mode
  /// @param by  kFileWriteBy...
  void drop_set_id(std::uint32_t mode, std::uint32_t by) const;
  /// `mode`: of fallocate.
  [[nodiscard]] int allocate(int mode, std::uint64_t offset, std::uint64_t length);
  /// Ends the previous delegation.
  void set_delegation(std::shared_ptr<WriteDelegation> delegation);
  /// Null: the file is not delegated for writing.
  [[nodiscard]] WriteDelegation* delegation() const { return delegation_.get(); }
  /// Returns the error of close(2). Must be the last call.
  int close();
  /// For all other system calls.
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }

 private:
  [[nodiscard]] bool read_in_place(std::span<const iovec> into, std::uint64_t offset);

  UniqueFd descriptor_;
  std::optional<InPlaceReader> in_place_{};  ///< empty: nothing was read
  std::shared_ptr<WriteDelegation> delegation_{};
};

}  // namespace wherry::file
