// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <wherry/require_cxx20.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include <wherry/error.hpp>
#include <wherry/result.hpp>

namespace wherry {

namespace window {
class Space;
}

/// What the peer may do with a window, or this side with a mapping.
enum class Access : std::uint8_t { read = 1, write = 2, read_write = 3 };

/// How a transfer is to complete.
struct RmaOptions {
  /// Return after completion. Where memory is shared every transfer completes first; on put fabrics it may complete
  /// late, and a fence or a signal says when.
  bool complete = false;
  bool ordered = false;  ///< the last cache line of the destination becomes visible after all the rest
};

/// Whose transfers a fence is about.
enum class Started : std::uint8_t { here, by_peer };

/// All transfers of one side up to a moment.
struct Mark {
  Started by = Started::here;
  std::uint64_t calls = 0;
};

/// A word that is stored once the transfers before it are complete.
struct Signal {
  std::uint64_t offset = 0;  ///< of 8 bytes in one window; a multiple of 4
  std::uint64_t value = 0;
};

/// Memory of the peer's, mapped into this process. It outlives the window, the stream and the peer, and is unmapped by
/// the destructor. A forked child does not have it.
class MappedWindow {
 public:
  MappedWindow() noexcept = default;
  explicit MappedWindow(std::span<std::byte> bytes) noexcept : bytes_(bytes) {}
  MappedWindow(MappedWindow&& other) noexcept { *this = static_cast<MappedWindow&&>(other); }
  MappedWindow& operator=(MappedWindow&& other) noexcept;
  MappedWindow(const MappedWindow&) = delete;
  MappedWindow& operator=(const MappedWindow&) = delete;
  ~MappedWindow();

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  /// Leaves the mapping to the caller, to munmap; the owner of the window does not hear of that.
  std::span<std::byte> release() noexcept { return std::exchange(bytes_, {}); }

 private:
  std::span<std::byte> bytes_;
};

/// The windows of a stream's two sides (`Stream::windows`): each side registers ranges of its memory at offsets of its
/// own address space, and reads, writes and maps the peer's by offset, at any time, without the peer's program taking
/// part. Offsets are told by other means, such as the stream.
///
/// A handle of one pointer: it must not outlive the stream, nor be used after `Stream::close`. Any thread may call
/// anything. What moves data never throws; errors, as in Result::error: ENXIO not all of a range is registered, EPERM a
/// window does not allow it, EFAULT a buffer is not there, EINVAL no bytes or unaligned, ECONNRESET the peer has closed
/// or died, ETIMEDOUT on a network where nothing went on for 10 s. After ETIMEDOUT the memory of a transfer stays in
/// use until the stream is closed: it must not be freed before, and may change.
class Windows {
 public:
  explicit Windows(window::Space& space) noexcept : space_(&space) {}

  /// Registers `memory`, which the program already has, and may use and free as before: what the peer reaches stays
  /// until it is unregistered. Whole pages. Other threads may go on using it meanwhile (docs/limits.md).
  /// @param access  what the peer may do
  /// @param offset  where; empty: chosen, never 0. Otherwise a multiple of the page size below 2^62
  /// Returns the offset. Throws Error: EINVAL, EFAULT (not all of it is mapped), EADDRINUSE, EBUSY (the peer still maps
  /// what was there), ENOMEM (or more than 4096 windows), ECONNRESET, ENOTSUP (in a forked child), ETIMEDOUT (on a
  /// network whose other end does not acknowledge it; nothing is registered).
  std::uint64_t add(std::span<std::byte> memory, Access access = Access::read_write,
                    std::optional<std::uint64_t> offset = {});
  /// Unregisters the windows within a range of whole pages; one that is cut, or none there, is EINVAL or ENXIO. The
  /// peer can start nothing new on them; what it has mapped stays mapped, and keeps its offsets as long.
  [[nodiscard]] Result remove(std::uint64_t offset, std::size_t bytes) noexcept;

  /// Copies `bytes` from this side's windows to the peer's, or the other way round. A range may span windows that
  /// follow each other, at any alignment. Moved: all of them.
  [[nodiscard]] Result write_to(std::uint64_t local, std::size_t bytes, std::uint64_t remote,
                                RmaOptions options = {}) noexcept;
  [[nodiscard]] Result read_from(std::uint64_t local, std::size_t bytes, std::uint64_t remote,
                                 RmaOptions options = {}) noexcept;
  /// The same with any memory of this process's. On put fabrics a source must stay until a fence.
  [[nodiscard]] Result write_to(std::span<const std::byte> source, std::uint64_t remote,
                                RmaOptions options = {}) noexcept;
  [[nodiscard]] Result read_from(std::span<std::byte> destination, std::uint64_t remote,
                                 RmaOptions options = {}) noexcept;

  /// All transfers that have been started so far, here or by the peer; and waiting until they are complete.
  [[nodiscard]] Mark mark(Started by = Started::here) const noexcept;
  [[nodiscard]] Result wait(Mark mark, std::chrono::nanoseconds timeout = std::chrono::seconds(10)) noexcept;
  /// Once these transfers are complete, stores `local` in a window of this side's, then `remote` in one of the peer's.
  /// A load that sees a word also sees all their bytes.
  [[nodiscard]] Result signal(std::optional<Signal> local, std::optional<Signal> remote,
                              Started by = Started::here) noexcept;

  /// Whether the peer's memory can be mapped at all: false on a put fabric, as a network is.
  [[nodiscard]] bool can_map() const noexcept;
  /// Maps whole pages of the peer's windows, as shared memory. Throws Error: EINVAL, ENXIO, EPERM, ENOMEM, ECONNRESET,
  /// ENOTSUP (a put fabric, or memory that the owner could not move: a shared mapping of a file).
  [[nodiscard]] MappedWindow map(std::uint64_t remote, std::size_t bytes, Access access = Access::read_write);

 private:
  window::Space* space_;
};

}  // namespace wherry
