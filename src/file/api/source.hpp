// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <span>

#include <wherry/result.hpp>

#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// An open file of this machine or of a host. Thread-safe. A Result has the bytes moved, and the error after them.
/// Functions that return int return 0 or an errno value. May throw std::bad_alloc.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  /// Reads everything, or up to the end of the file.
  virtual Result read(std::uint64_t offset, std::span<const iovec> into) = 0;
  virtual Result write(std::uint64_t offset, std::span<const iovec> from) = 0;
  virtual Result append(std::span<const iovec> from) = 0;
  virtual int flush(bool data_only) = 0;
  /// `status.device`: as this kernel numbers it, or a number that no device of another host has.
  virtual int status(layout::FileStatus& status) = 0;
  virtual int set_size(std::uint64_t size) = 0;
  virtual int close() = 0;

  /// This process's own descriptor; -1: none.
  [[nodiscard]] virtual int descriptor() const { return -1; }
  /// Whether the file is at a host, which opened it for this process.
  [[nodiscard]] virtual bool is_remote() const = 0;
  /// Whether this is a forked child's copy, which it must not use.
  [[nodiscard]] virtual bool inherited() const = 0;
};

}  // namespace wherry::file
