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

/// A file that the host's server opened, by the server's descriptor: where both run under one kernel, and it lets this
/// process (pidfd_getfd: the same user, and no hardening in between), data goes between the file and the caller's
/// buffer by one copy, without the server. It stays usable when the server dies, or would no longer serve it. Any
/// thread; blocks as the kernel's calls do.
class LentFile {
 public:
  /// What `take` needs of the process of that number; not valid where the kernel has none to give.
  static UniqueFd process(std::int64_t number);
  /// Whether the kernel lets this process take none of that process's descriptors: tried with one of them.
  static bool is_refused(int owner, std::uint64_t number);
  /// Takes descriptor `number` of process `owner` (a pidfd), if that is the file of `status`, opened with `flags` (of
  /// layout::kFileOpen...). Null, and an errno value: EPERM if the kernel refuses, ESTALE if it is something else,
  /// EMFILE also where files of this kind are a quarter of what this process may open already, and what else
  /// pidfd_getfd says. The descriptor is none that select() can name, where the limit allows it, nor 0, 1 or 2.
  static std::shared_ptr<LentFile> take(int owner, std::uint64_t number, const layout::FileStatus& status,
                                        std::uint32_t flags, int& error);
  /// One that an earlier process has taken.
  static std::shared_ptr<LentFile> keep(UniqueFd descriptor, std::uint32_t flags);
  LentFile(const LentFile&) = delete;
  LentFile& operator=(const LentFile&) = delete;
  ~LentFile();

  /// Whether it was opened to append.
  [[nodiscard]] bool appends() const { return appends_; }
  /// Of the same open file description as the server's.
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }

  /// As of Host: a short read is the end of the file.
  [[nodiscard]] Result read(std::uint64_t offset, std::span<const iovec> into) const;
  [[nodiscard]] Result write(std::uint64_t offset, std::span<const iovec> from) const;
  /// One call, so that it is atomic: of at most kMostParts buffers.
  [[nodiscard]] Result append(std::span<const iovec> from);
  /// Where the last append ended.
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
  mutable std::mutex mutex_;  // of appends
  std::uint64_t end_;
};

}  // namespace wherry::file
