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

/// The permitted access of the peer to a window, or of this side to a mapping.
enum class Access : std::uint8_t { read = 1, write = 2, read_write = 3 };

/// Options of a transfer.
struct RmaOptions {
  /// Return after completion. On load/store fabrics every transfer completes before the call returns. On put fabrics it
  /// may complete later; use a fence or a signal to find out when.
  bool complete = false;
  bool ordered = false;  ///< the last cache line of the destination becomes visible after all others
};

/// Which side's transfers a fence covers.
enum class Started : std::uint8_t { here, by_peer };

/// All transfers of one side that had started when the mark was made.
struct Mark {
  Started by = Started::here;
  std::uint64_t calls = 0;
};

/// A word that is stored once all earlier transfers are complete.
struct Signal {
  std::uint64_t offset = 0;  ///< where: 8 bytes within one window; a multiple of 4
  std::uint64_t value = 0;
};

/// Memory of the peer, mapped into this process. The mapping outlives the window, the stream and the peer; the
/// destructor unmaps it. A forked child does not have it.
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
  /// Transfers the mapping to the caller, which must munmap it. The owner of the window is not notified of that munmap.
  std::span<std::byte> release() noexcept { return std::exchange(bytes_, {}); }

 private:
  std::span<std::byte> bytes_;
};

/// The windows of a stream's two sides (`Stream::windows`). Each side registers ranges of its memory at offsets of its
/// own address space. The other side reads, writes and maps them by offset at any time; the owner's program takes no
/// part. The program transfers the offsets, such as over the stream.
///
/// Ownership: a handle of one pointer. It must not outlive the stream, nor be used after `Stream::close`.
///
/// Threads: any call from any thread.
///
/// Errors: moving data never throws. Values of Result::error:
///   - ENXIO: a part of a range is not registered;
///   - EPERM: a window does not permit the access;
///   - EFAULT: a buffer is not mapped;
///   - EINVAL: no bytes, or not aligned;
///   - ECONNRESET: the peer has closed or died;
///   - ETIMEDOUT: no progress for 10 s on a network. The memory of the transfer stays in use until the stream is
///     closed: it may change, and must not be freed before.
class Windows {
 public:
  explicit Windows(window::Space& space) noexcept : space_(&space) {}

  /// Registers `memory`, in whole pages. The program may use and free the memory as before: the registered pages stay
  /// until they are unregistered. Other threads may use it during the call (docs/limits.md).
  /// @param access  what the peer may do
  /// @param offset  where; empty: chosen, never 0. Otherwise a multiple of the page size below 2^62
  /// Returns the offset. Throws Error: EINVAL, EFAULT (a part is not mapped), EADDRINUSE, EBUSY (the peer still maps a
  /// former window there), ENOMEM (or more than 4096 windows), ECONNRESET, ENOTSUP (in a forked child), ETIMEDOUT (a
  /// network whose other end does not acknowledge the registration; nothing is registered).
  std::uint64_t add(std::span<std::byte> memory, Access access = Access::read_write,
                    std::optional<std::uint64_t> offset = {});
  /// Unregisters the windows within a range of whole pages. EINVAL if the range cuts a window, ENXIO if it has none.
  /// The peer can start no new transfer on them. Its mappings stay, and keep their offsets in use.
  [[nodiscard]] Result remove(std::uint64_t offset, std::size_t bytes) noexcept;

  /// Copies `bytes` from this side's windows to the peer's, or in the opposite direction. A range may span adjacent
  /// windows, at any alignment. Moved: all bytes.
  [[nodiscard]] Result write_to(std::uint64_t local, std::size_t bytes, std::uint64_t remote,
                                RmaOptions options = {}) noexcept;
  [[nodiscard]] Result read_from(std::uint64_t local, std::size_t bytes, std::uint64_t remote,
                                 RmaOptions options = {}) noexcept;
  /// The same with any memory of this process. On put fabrics the source must stay unchanged until a fence.
  [[nodiscard]] Result write_to(std::span<const std::byte> source, std::uint64_t remote,
                                RmaOptions options = {}) noexcept;
  [[nodiscard]] Result read_from(std::span<std::byte> destination, std::uint64_t remote,
                                 RmaOptions options = {}) noexcept;

  /// Marks all transfers started so far, by this side or by the peer. wait() blocks until they are complete.
  [[nodiscard]] Mark mark(Started by = Started::here) const noexcept;
  [[nodiscard]] Result wait(Mark mark, std::chrono::nanoseconds timeout = std::chrono::seconds(10)) noexcept;
  /// Stores words once all transfers started so far are complete: `local` in a window of this side, then `remote` in a
  /// window of the peer. A load that sees a word also sees all bytes of the transfers.
  [[nodiscard]] Result signal(std::optional<Signal> local, std::optional<Signal> remote,
                              Started by = Started::here) noexcept;

  /// Whether the peer's memory can be mapped. False on a put fabric, such as a network.
  [[nodiscard]] bool can_map() const noexcept;
  /// Maps whole pages of the peer's windows as shared memory. Throws Error: EINVAL, ENXIO, EPERM, ENOMEM, ECONNRESET,
  /// ENOTSUP (a put fabric; or memory that the owner could not move, such as a shared mapping of a file).
  [[nodiscard]] MappedWindow map(std::uint64_t remote, std::size_t bytes, Access access = Access::read_write);

 private:
  window::Space* space_;
};

}  // namespace wherry
