// SPDX-License-Identifier: Apache-2.0
//
// Files of mounts whose data this process moves past the mount, by libwherry-direct.so: which files, and their
// lifetime.
//
// A descriptor has a word: its state in this generation (direct_words.hpp), or the slot of the file that was opened for
// it. A slot counts its users: its descriptor, and each transfer. The last user closes the file. So a transfer
// continues if another thread closes the descriptor, as the kernel's call would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <wherry/file_path.hpp>

#include "direct_library.hpp"
#include "file/direct/reuse.hpp"

namespace wherry::preload {

/// Keeps the file in use that transfers of a descriptor may take.
class DirectUse {
 public:
  /// Opens the file at the first call for the descriptor. The caller has a DirectCall.
  /// @param bytes  length of the transfer
  DirectUse(int fd, bool writes, std::size_t bytes) noexcept;
  DirectUse(const DirectUse&) = delete;
  DirectUse& operator=(const DirectUse&) = delete;
  ~DirectUse();
  explicit operator bool() const { return slot_ >= 0; }

  [[nodiscard]] int descriptor() const noexcept { return fd_; }
  [[nodiscard]] files::Path path() const noexcept;
  [[nodiscard]] std::int64_t read(std::uint64_t offset, void* into, std::size_t bytes) const noexcept;
  [[nodiscard]] std::int64_t write(std::uint64_t offset, const void* from, std::size_t bytes) const noexcept;
  /// Whether the file had set-user-ID or set-group-ID bits after one of the writes.
  [[nodiscard]] bool has_set_id() const noexcept;
  /// As file::DirectHost::is_warm.
  [[nodiscard]] bool is_warm(bool writes) const noexcept;
  /// As file::DirectHost::is_shared.
  [[nodiscard]] bool is_shared() const noexcept;
  void boot(std::uint8_t (&id)[16]) const noexcept;
  /// Whether this transfer begins where the last one of the descriptor ended.
  [[nodiscard]] bool is_sequential(std::uint64_t offset, std::size_t bytes) const noexcept;
  /// Counts a write. Returns whether enough writes have gone past the mount, since the file was opened, to tell how
  /// long they take if the connection is warm.
  [[nodiscard]] bool is_measured() const noexcept;
  /// For a read that would go past the mount, because its pages are missing: whether it should bring them into the page
  /// cache instead.
  [[nodiscard]] bool is_worth_filling(const file::Reuse::Costs& costs, std::uint64_t offset,
                                      std::size_t bytes) const noexcept;
  /// Returns kTransferClasses entries in which other processes see this one's choices, or null.
  [[nodiscard]] layout::TransferClass* transfer_classes() const noexcept;
  void succeeded() const noexcept;
  /// To be called after a failed transfer: closes the file, and leaves the descriptor's next transfers to the kernel,
  /// for a time that doubles.
  void give_up() noexcept;
  /// The same because the kernel's way is expected to be faster for a write of `bytes`. The first pause is short, since
  /// that must be measured; but not for writes that may go by a ring, which is not measured.
  void prefer_kernel(std::size_t bytes) noexcept;
  /// Closes the file. The next transfer may open it again.
  void leave_to_kernel() noexcept;

 private:
  [[nodiscard]] bool is_same_file() noexcept;
  [[nodiscard]] std::uint32_t failures() const noexcept;
  void close_with(std::uint64_t after) noexcept;

  int fd_;
  int slot_ = -1;
};

/// Lets no transfer of the descriptor go past the mount while it has a ring. Call when it has got one.
void stay_with_ring(int fd) noexcept;
/// Whether a read on the path `auto` is left to the mount because the process has no connection to the server, and has
/// read too little to make one. Counts the read.
bool reads_little(int fd, std::size_t bytes) noexcept;
/// Whether the descriptor's file is open at the server.
bool is_open_at_host(int fd) noexcept;
/// Whether a read of a file of a mount on the path `auto`, whose pages are there, leaves the question to later reads
/// which way is faster: it takes time to connect to the server, and such reads hardly gain from it. False after a read
/// of the descriptor that has missed, since the kernel reads ahead then.
bool may_hit_wait(int fd) noexcept;
/// To be called after such a read.
/// @param bytes  of it, and of the next ones that are not looked at
void count_waiting_hits(std::uint64_t bytes) noexcept;
/// Whether a DirectUse is worthwhile now.
bool is_ready(int fd) noexcept;
/// Whether to leave this read to the kernel without another look at the pages: the last ones were there. Looking takes
/// half as long as a read of 64 KiB.
bool is_expected_hit(int fd, std::uint64_t offset, std::size_t bytes) noexcept;
/// To be called when a read was left to the kernel because its pages are there. Returns how many more are expected.
std::uint64_t expect_hits(int fd) noexcept;
/// To be called when a read that was expected to be a hit could not be made in place.
void expect_fewer_hits(int fd) noexcept;

/// To be called when a descriptor is about to be closed, or is already another file's.
void forget_direct(int fd) noexcept;
/// Excludes the descriptor from transfers past the mount.
void never_direct(int fd) noexcept;
/// To be called before the program closes a number that it has not opened. If the number is libwherry-direct.so's,
/// closes all of the library's descriptors first, before it can become another file's.
void closes_number(int fd) noexcept;
/// Closes all files and connections: from then on the kernel makes each transfer. Returns once that is done, by any
/// thread. The caller must not have a DirectCall.
void end_direct() noexcept;

void forget_direct_after_fork() noexcept;

}  // namespace wherry::preload
