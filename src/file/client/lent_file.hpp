// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include <wherry/result.hpp>

#include "base/unique_fd.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// A file of the host's server, used through the server's own descriptor. Both processes must run under one kernel, as
/// the same user, without hardening that forbids pidfd_getfd. Data is copied once, between the file and the caller's
/// buffer, without the server. The file stays usable if the server dies or no longer serves it. Thread-safe; blocks as
/// the kernel's calls do.
class LentFile {
 public:
  /// A pidfd of process `number`, for `take`; invalid if the kernel refuses it.
  static UniqueFd process(std::int64_t number);
  /// Whether the kernel forbids this process to take descriptors of `owner`. Tries it with descriptor `number`.
  static bool is_refused(int owner, std::uint64_t number);
  /// Takes descriptor `number` of process `owner` (a pidfd). It must be the file of `status`, opened with `flags` (of
  /// layout::kFileOpen...). On failure null and an errno value, as from pidfd_getfd: EPERM if the kernel refuses,
  /// ESTALE if the descriptor is something else, EMFILE also if lent files already take a quarter of this process's
  /// descriptor limit. The new descriptor is never 0, 1 or 2, and is beyond the range of select() if the limit allows
  /// it.
  static std::shared_ptr<LentFile> take(int owner, std::uint64_t number, const layout::FileStatus& status,
                                        std::uint32_t flags, int& error);
  /// Wraps a descriptor that an earlier process took.
  static std::shared_ptr<LentFile> keep(UniqueFd descriptor, std::uint32_t flags);
  LentFile(const LentFile&) = delete;
  LentFile& operator=(const LentFile&) = delete;
  ~LentFile();

  /// Whether the file was opened with O_APPEND.
  [[nodiscard]] bool appends() const { return appends_; }
  /// Shares its open file description with the server's descriptor.
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }

  /// A short read is the end of the file.
  [[nodiscard]] Result read(std::uint64_t offset, std::span<const iovec> into) const;
  [[nodiscard]] Result write(std::uint64_t offset, std::span<const iovec> from) const;
  /// One system call, hence atomic. At most kMostParts buffers.
  [[nodiscard]] Result append(std::span<const iovec> from);
  /// The end of the file after the last append.
  [[nodiscard]] std::uint64_t end() const;
  static constexpr std::size_t kMostParts = 1024;
  [[nodiscard]] int flush(bool data_only) const;
  [[nodiscard]] int status(layout::FileStatus& status) const;
  [[nodiscard]] int set_size(std::uint64_t size) const;
  [[nodiscard]] int set_mode(std::uint32_t mode) const;
  [[nodiscard]] int set_owner(std::uint32_t user, std::uint32_t group) const;
  [[nodiscard]] int set_times(const layout::FileTimes& times) const;

 private:
  LentFile(UniqueFd descriptor, bool appends, std::uint64_t end)
      : descriptor_(std::move(descriptor)), appends_(appends), end_(end) {}

  UniqueFd descriptor_;
  bool appends_;
  mutable std::mutex mutex_;  // serializes appends
  std::uint64_t end_;
};

}  // namespace wherry::file
