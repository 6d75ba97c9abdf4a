// SPDX-License-Identifier: Apache-2.0
//
// Files of mounts whose data this process moves past the mount, by libwherry-direct.so: which, and their life.
//
// A descriptor has a word: what is known of it in this generation (descriptors.hpp), or the slot of the file that was
// opened for it. A slot counts its users: its descriptor, and each transfer. The last one closes the file, so that a
// transfer goes on when another thread closes the descriptor, as the kernel's call would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <wherry/file_path.hpp>

#include "base/not_cancelled.hpp"
#include "direct/direct.hpp"

namespace wherry::preload {

/// Of a thread that is in a DirectCall.
struct Patience {
  bool active = false;
  std::uint64_t mask_before = 0;
  std::uint32_t end_ms = 0;  ///< of the coarse clock
};

/// Around all calls of libwherry-direct.so: no handler runs in this thread, which might call it again, or leave by a
/// jump. Nor is the thread cancelled. A signal that comes ends a call that waits for the server; the kernel's call is
/// made then, after the handler, which may leave by a jump.
class DirectCall {
 public:
  /// @param most_ms  how long the server is waited for
  explicit DirectCall(std::uint32_t most_ms) noexcept;
  DirectCall(const DirectCall&) = delete;
  DirectCall& operator=(const DirectCall&) = delete;
  ~DirectCall();

 private:
  std::optional<NotCancelled> not_cancelled_;  ///< within the time in which signals are blocked
  Patience before_;
};

/// For transfers. The kernel's call then waits as the mount does.
inline constexpr std::uint32_t kMostWaitMs = 60'000;

/// The file that transfers of a descriptor may take, in use while this lives.
class DirectUse {
 public:
  /// Opens it at the first call for the descriptor. For the holder of a DirectCall.
  /// @param bytes  of the transfer
  DirectUse(int fd, bool writes, std::size_t bytes) noexcept;
  DirectUse(const DirectUse&) = delete;
  DirectUse& operator=(const DirectUse&) = delete;
  ~DirectUse();
  explicit operator bool() const { return slot_ >= 0; }

  [[nodiscard]] files::Path path() const noexcept;
  [[nodiscard]] std::int64_t read(std::uint64_t offset, void* into, std::size_t bytes) const noexcept;
  [[nodiscard]] std::int64_t write(std::uint64_t offset, const void* from, std::size_t bytes) const noexcept;
  void boot(std::uint8_t (&id)[16]) const noexcept;
  /// Whether this transfer begins where the last one of the descriptor ended.
  [[nodiscard]] bool goes_on(std::uint64_t offset, std::size_t bytes) const noexcept;
  /// kTransferClasses of them, in which others see what this process chooses; null: there are none.
  [[nodiscard]] layout::TransferClass* transfer_classes() const noexcept;
  void succeeded() const noexcept;
  /// A transfer has failed: the descriptor's next ones are the kernel's, for a time.
  void give_up() noexcept;

 private:
  [[nodiscard]] bool is_same_file() const noexcept;

  int fd_;
  int slot_ = -1;
};

/// Whether it is worth a DirectUse now.
bool is_ready(int fd) noexcept;

/// The descriptor is about to be closed, or is another file's by now.
void forget_direct(int fd) noexcept;
/// The descriptor is not for transfers past the mount any more.
void never_direct(int fd) noexcept;
/// The program is about to close a number that it has not opened: before one of libwherry-direct.so's is another
/// file's, all of them are closed.
void closes_number(int fd) noexcept;
/// Closes all of them: from now on each transfer is the kernel's. Returns once that is done, by whichever thread. For
/// no holder of a DirectCall.
void end_direct() noexcept;

void forget_direct_after_fork() noexcept;
/// In the forked child, later: closes its copies of the parent's connections.
/// @param handled  the library's own handlers of forks have run, which make its locks free
void close_direct_after_fork(bool handled) noexcept;

}  // namespace wherry::preload
