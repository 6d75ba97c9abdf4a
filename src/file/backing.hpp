// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/unique_fd.hpp"
#include "file/layout/wire.hpp"

namespace wherry::file {

/// What a server does with a file or directory that a client has open. Of one thread at a time; blocks as the file
/// system does. Calls that return ssize_t return -1 and errno as the kernel's do, others 0 or an errno value.
class Backing {
 public:
  Backing() = default;
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;
  virtual ~Backing() = default;

  /// Fewer bytes than there is room for: the end of the file.
  [[nodiscard]] virtual ssize_t read(std::span<const iovec> into, std::uint64_t offset) = 0;
  [[nodiscard]] virtual ssize_t write(std::span<const iovec> from, std::uint64_t offset) = 0;
  /// One write at the end of a file that was opened for that.
  [[nodiscard]] virtual ssize_t append(std::span<const std::byte> data) = 0;
  [[nodiscard]] virtual int flush(bool data_only) = 0;
  [[nodiscard]] virtual int status(layout::FileStatus& status) = 0;
  [[nodiscard]] virtual int set_size(std::uint64_t size) = 0;
  /// What close(2) says. Nothing may follow.
  virtual int close() = 0;
  /// For all other calls.
  [[nodiscard]] virtual int descriptor() const = 0;
};

/// By the kernel's own calls.
class KernelBacking final : public Backing {
 public:
  explicit KernelBacking(UniqueFd descriptor) : descriptor_(std::move(descriptor)) {}

  [[nodiscard]] ssize_t read(std::span<const iovec> into, std::uint64_t offset) override;
  [[nodiscard]] ssize_t write(std::span<const iovec> from, std::uint64_t offset) override;
  [[nodiscard]] ssize_t append(std::span<const std::byte> data) override;
  [[nodiscard]] int flush(bool data_only) override;
  [[nodiscard]] int status(layout::FileStatus& status) override;
  [[nodiscard]] int set_size(std::uint64_t size) override;
  int close() override;
  [[nodiscard]] int descriptor() const override { return descriptor_.get(); }

 private:
  UniqueFd descriptor_;
};

}  // namespace wherry::file
