// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <span>

#include <wherry/result.hpp>

#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// An open file where it is. From any thread. Results are bytes moved and an error after them; functions that return
/// int return 0 or an errno value. May throw std::bad_alloc.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  /// Reads all of it, or up to the end of the file.
  virtual Result read(std::uint64_t offset, std::span<const iovec> into) = 0;
  virtual Result write(std::uint64_t offset, std::span<const iovec> from) = 0;
  virtual Result append(std::span<const iovec> from) = 0;
  virtual int flush(bool data_only) = 0;
  /// `device` as this kernel knows it, or a number that no device of another host has.
  virtual int status(layout::FileStatus& status) = 0;
  virtual int set_size(std::uint64_t size) = 0;
  virtual int close() = 0;

  /// This process's own; -1: it has none.
  [[nodiscard]] virtual int descriptor() const { return -1; }
  /// Of a host, and not this process's own to open.
  [[nodiscard]] virtual bool is_remote() const = 0;
  /// A copy in a forked child that must not be used there.
  [[nodiscard]] virtual bool inherited() const = 0;
};

}  // namespace wherry::file
