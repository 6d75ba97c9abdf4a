// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "file/mount/deferred_errors.hpp"
#include "file/mount/hosts.hpp"
#include "file/mount/passthrough.hpp"

namespace wherry::file::mount {

/// When a delegation of a file is asked for: after some looks at it, since a program that reads a file once and closes
/// it gains nothing, and more and more seldom where it is refused. Any thread; which of two looks asks is of no matter.
class DelegationPolicy {
 public:
  [[nodiscard]] bool is_due() {
    return looks_.fetch_add(1, std::memory_order_relaxed) + 1 >= due_.load(std::memory_order_relaxed);
  }
  void note(bool granted) {
    const std::uint32_t pause = granted ? kFirst : pause_.load(std::memory_order_relaxed);
    pause_.store(granted ? kFirst : std::min(2 * pause, kMost), std::memory_order_relaxed);
    due_.store(granted ? 1 : pause, std::memory_order_relaxed);
    looks_.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t kFirst = 4;
  static constexpr std::uint32_t kMost = 1024;
  std::atomic<std::uint32_t> looks_{0};
  std::atomic<std::uint32_t> due_{kFirst};  ///< at this look
  std::atomic<std::uint32_t> pause_{kFirst};
};

/// What a descriptor of the mount refers to. Any thread.
class OpenFile {
 public:
  /// @param flags  of layout::kFileOpen...
  /// @param mode  of the file when it was opened
  OpenFile(std::unique_ptr<Hosts::File> file, std::uint32_t flags, std::uint32_t mode)
      : file_(std::move(file)), flags_(flags), mode_(mode) {}

  [[nodiscard]] const Hosts::File& file() const { return *file_; }
  /// As the kernel calls it. Once, before others know of this.
  void set_number(std::uint64_t number) { number_ = number; }
  [[nodiscard]] std::uint64_t number() const { return number_; }
  /// The supervisor has a descriptor of it.
  void set_kept() { kept_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool is_kept() const { return kept_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t flags() const { return flags_; }
  [[nodiscard]] std::uint32_t mode() const { return mode_; }
  /// By which the kernel moves the data, or null; and a descriptor of the file that the server lends, if there is one,
  /// of this or of another open file. Once, before others know of this.
  void set_backing(std::shared_ptr<const Passthrough::Backing> backing, std::shared_ptr<const LentFile> lent) {
    backing_ = std::move(backing);
    lent_ = std::move(lent);
  }
  [[nodiscard]] const std::shared_ptr<const LentFile>& lent() const { return lent_; }
  [[nodiscard]] const std::shared_ptr<const Passthrough::Backing>& backing() const { return backing_; }
  [[nodiscard]] DelegationPolicy& delegation() { return delegation_; }
  /// When a delegation for writing is asked for.
  [[nodiscard]] DelegationPolicy& writing() { return writing_; }
  [[nodiscard]] DeferredErrors& errors() { return errors_; }
  /// The kernel has dropped attributes that came with a list of the directory. None are sent again while this is open.
  void settle() { settled_.store(true, std::memory_order_release); }                          // SETTLED: after the drop
  [[nodiscard]] bool is_settled() const { return settled_.load(std::memory_order_acquire); }  // SETTLED
  [[nodiscard]] bool writes() const { return (flags_ & layout::kFileOpenWrite) != 0; }
  [[nodiscard]] bool reads() const { return (flags_ & layout::kFileOpenRead) != 0; }
  [[nodiscard]] bool appends() const { return (flags_ & layout::kFileOpenAppend) != 0; }
  /// Whether a program may map it and change the mapping, of which nothing tells this process.
  [[nodiscard]] bool may_be_mapped_to_write() const { return reads() && writes(); }
  /// Held while tickets for writing are made, and ended.
  [[nodiscard]] std::mutex& ticket_mutex() { return ticket_mutex_; }
  /// There may be such tickets. For the holder of the mutex.
  [[nodiscard]] bool& has_write_tickets() { return has_write_tickets_; }
  /// Each write is to be durable when it returns.
  [[nodiscard]] bool synchronises() const {
    return (flags_ & (layout::kFileOpenSync | layout::kFileOpenDataSync)) != 0;
  }
  /// Whether reads and writes go past the kernel, to this process. Its page cache cuts writes at the ends of pages, and
  /// appends are to be atomic. Writes that it moves to the server's file by itself would leave set-user-ID and
  /// set-group-ID bits.
  [[nodiscard]] bool is_direct() const {
    if (backing_ == nullptr) return appends();
    return writes() && (mode_ & (S_ISUID | S_ISGID)) != 0;
  }

 private:
  std::unique_ptr<Hosts::File> file_;
  std::uint64_t number_ = 0;
  std::uint32_t flags_;
  std::uint32_t mode_;
  std::shared_ptr<const Passthrough::Backing> backing_{};
  std::shared_ptr<const LentFile> lent_{};
  DelegationPolicy delegation_;
  DelegationPolicy writing_;
  DeferredErrors errors_;
  std::atomic<bool> settled_{false};
  std::atomic<bool> kept_{false};
  std::mutex ticket_mutex_;
  bool has_write_tickets_ = false;
};

/// A directory that is being read.
class OpenDirectory {
 public:
  OpenDirectory(std::unique_ptr<Hosts::File> file, std::uint64_t device) : file_(std::move(file)), device_(device) {}

  [[nodiscard]] const Hosts::File& file() const { return *file_; }
  void set_number(std::uint64_t number) { number_ = number; }
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] std::uint64_t device() const { return device_; }

 private:
  std::unique_ptr<Hosts::File> file_;
  std::uint64_t number_ = 0;
  std::uint64_t device_;
};

}  // namespace wherry::file::mount
