// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// A program's own connection to a server, for data of files of a mount that it has tickets for. Where it breaks
/// nothing is tried again: the program's own call to the mount is the other way to the same file.
///
/// Threads: any; calls go one after the other. Fork: stays the parent's.
class DirectHost {
 public:
  /// An open file. Ends before its host does.
  class File {
   public:
    File(DirectHost& host, std::uint64_t handle) : host_(host), handle_(handle) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    /// Waits for no transfer of another file: the thread that makes one closes this file after it.
    ~File();
    /// Fewer bytes: the end of the file. On failure some bytes of `into` may have been overwritten. EFAULT: not all of
    /// it can be written.
    [[nodiscard]] Result read(std::uint64_t offset, std::span<std::byte> into);
    /// On failure any part of the data may be in the file. EFAULT: not all of it can be read.
    [[nodiscard]] Result write(std::uint64_t offset, std::span<const std::byte> from);
    [[nodiscard]] DirectHost& host() const { return host_; }

   private:
    [[nodiscard]] Result read_piece(std::uint64_t offset, std::span<std::byte> into);

    DirectHost& host_;
    std::uint64_t handle_;
  };

  /// Connects, without waiting for a server that is not there. Throws Error.
  /// @param goes_on  as of StreamConnection::set_patience
  DirectHost(const std::string& address, std::function<bool()> goes_on);
  DirectHost(const DirectHost&) = delete;
  DirectHost& operator=(const DirectHost&) = delete;
  ~DirectHost() = default;

  /// Returns 0 or an errno value: ESTALE, there is no such ticket; ECONNRESET, the connection is broken.
  int open(const layout::FileTicket& ticket, std::unique_ptr<File>& file);
  /// Waits for nothing.
  [[nodiscard]] bool is_broken() const { return broken_.load(std::memory_order_relaxed); }
  /// In a forked child, where no other thread of the parent's was inside a call: gives up its copy of the connection.
  void forget_after_fork() { connection_.reset(); }
  /// Of the server's kernel.
  [[nodiscard]] BootId boot() const { return boot_; }

 private:
  /// A thread's turn on the connection.
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
  /// Empty, and the connection is gone, if it breaks.
  std::optional<layout::FileAnswer> ask(const layout::FileRequest& request, std::string_view second,
                                        std::span<const std::byte> data, std::span<std::byte> payload);

  std::mutex mutex_;
  std::unique_ptr<StreamConnection> connection_;
  std::atomic<bool> broken_{false};
  std::mutex left_mutex_;            ///< held for moments
  std::vector<std::uint64_t> left_;  ///< handles to be closed
  BootId boot_;
};

}  // namespace wherry::file
