// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include <wherry/result.hpp>

#include "file/cache.hpp"
#include "file/layout/wire.hpp"

namespace wherry::file {

class PathChoice;

/// What a file is like.
struct Look {
  layout::FileStatus status{};         ///< `device` as processes of this card know it: see Key
  std::uint64_t clock = 0;             ///< that stamps the file, before it was looked at (ns)
  Writers writers = Writers::perhaps;  ///< known only if it was asked for
};

/// An open file where it is: what the cache does not serve. From any thread. Results are bytes moved and an error after
/// them; functions that return int return 0 or an errno value. May throw std::bad_alloc.
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
  virtual int look(Look& look, bool writers) = 0;
  virtual int set_size(std::uint64_t size) = 0;
  virtual int close() = 0;

  /// Whether the source may read into memory that has no pages yet, which there may be no room for.
  virtual bool can_read_into(std::span<std::byte> memory) const = 0;
  /// This process's own; -1: it has none.
  [[nodiscard]] virtual int descriptor() const { return -1; }
  /// Of a host, and not this process's own to open.
  [[nodiscard]] virtual bool is_remote() const = 0;
  /// A copy in a forked child that must not be used there.
  [[nodiscard]] virtual bool inherited() const = 0;
  /// Whether its file system stamps each change, so that blocks of it may be cached.
  [[nodiscard]] virtual bool can_be_cached(const layout::FileStatus& status) = 0;
  /// What is known of the speed of such files.
  [[nodiscard]] virtual PathChoice& choice() = 0;
};

}  // namespace wherry::file
