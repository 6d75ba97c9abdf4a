// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <wherry/result.hpp>

#include "base/machine.hpp"
#include "file/client/host_connection.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// A program's own connection to a server, for data of files of a mount for which it has tickets. If it breaks, nothing
/// is retried: the program can reach the same file through the mount.
///
/// Thread-safe; calls are serialized. After a fork it belongs to the parent.
class DirectHost {
 public:
  /// Functions that the calling thread runs.
  struct Caller {
    std::function<bool()> may_wait;  ///< as in StreamConnection::set_wait_check
    StreamConnection::Copy copy;     ///< as in StreamConnection::set_copy
  };

  /// An open file. Must end before its host does.
  class File {
   public:
    File(DirectHost& host, std::uint64_t handle) : host_(host), handle_(handle) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    /// Does not wait for a transfer of another file: the thread in that transfer closes this file afterwards.
    ~File();
    /// A short read is the end of the file. On failure some bytes of `into` may be overwritten. EFAULT: some of `into`
    /// is not writable.
    [[nodiscard]] Result read(std::uint64_t offset, std::span<std::byte> into);
    /// On failure any part of the data may be in the file. ECONNRESET: also if some of `from` is not readable.
    [[nodiscard]] Result write(std::uint64_t offset, std::span<const std::byte> from);
    /// Whether the file had set-user-ID or set-group-ID bits after one of the writes.
    [[nodiscard]] bool has_set_id() const { return has_set_id_.load(std::memory_order_relaxed); }
    [[nodiscard]] DirectHost& host() const { return host_; }

   private:
    [[nodiscard]] Result read_part(std::uint64_t offset, std::span<std::byte> into);
    [[nodiscard]] Result write_part(std::uint64_t offset, std::span<const std::byte> from);

    DirectHost& host_;
    std::uint64_t handle_;
    std::atomic<bool> has_set_id_{false};
  };

  /// Connects, without waiting for a listener. Throws Error.
  DirectHost(const std::string& address, const Caller& caller);
  DirectHost(const DirectHost&) = delete;
  DirectHost& operator=(const DirectHost&) = delete;
  ~DirectHost() = default;

  /// Returns 0 or an errno value: ESTALE: no such ticket; ECONNRESET: the connection broke.
  int open(const layout::FileTicket& ticket, std::unique_ptr<File>& file);
  /// Never waits.
  [[nodiscard]] bool is_broken() const { return broken_.load(std::memory_order_relaxed); }
  /// Gives up the copy of the connection in a forked child. No other thread of the parent may have been in a call.
  void forget_after_fork() { connection_.reset(); }
  /// Whether transfers in this direction no longer touch new memory of the rings, which makes the first ones slow.
  [[nodiscard]] bool is_warm(bool writes) const {
    return moved_[writes ? 1 : 0].load(std::memory_order_relaxed) >= first_laps_[writes ? 1 : 0];
  }
  /// Whether the last answer came from a thread of the server for which other clients waited, too.
  [[nodiscard]] bool is_shared() const { return shared_.load(std::memory_order_relaxed); }
  /// Identifies the boot of the server's kernel.
  [[nodiscard]] BootId boot() const { return boot_; }

 private:
  /// Holds the connection for one thread; closes handles that are waiting for it at the end.
  class Turn {
   public:
    explicit Turn(DirectHost& host) : host_(host) { host_.mutex_.lock(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
      host_.mutex_.unlock();
      host_.close_left();
    }

   private:
    DirectHost& host_;
  };

  void close_left() noexcept;
  void break_off();
  /// Empty: the connection broke, and is gone.
  std::optional<layout::FileAnswer> ask(const layout::FileRequest& request, std::string_view second,
                                        std::span<const std::byte> data, std::span<std::byte> payload);

  std::mutex mutex_;
  std::unique_ptr<StreamConnection> connection_;
  std::atomic<bool> broken_{false};
  std::atomic<bool> shared_{false};
  std::array<std::atomic<std::uint64_t>, 2> moved_{};  ///< bytes read, and written
  std::array<std::uint64_t, 2> first_laps_;            ///< twice the ring
  std::mutex left_mutex_;                              ///< held only briefly
  std::vector<std::uint64_t> left_;                    ///< handles to close
  BootId boot_;
};

}  // namespace wherry::file
