// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "file/mount/cached_pages.hpp"
#include "file/mount/deferred_errors.hpp"
#include "file/mount/delegation_pages.hpp"
#include "file/mount/hosts.hpp"
#include "file/mount/passthrough.hpp"

namespace wherry::file::mount {

/// Decides when to ask for a delegation of a file: after a few looks, since a program that reads a file once and closes
/// it gains nothing. After refusals it asks exponentially less often. Thread-safe; if two looks race, either may ask.
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
  std::atomic<std::uint32_t> due_{kFirst};  ///< the look that is due
  std::atomic<std::uint32_t> pause_{kFirst};
};

/// What a descriptor of the mount refers to. Thread-safe.
class OpenFile {
 public:
  /// @param flags  of layout::kFileOpen...
  /// @param mode  the file's mode when it was opened
  OpenFile(std::unique_ptr<Hosts::File> file, std::uint32_t flags, std::uint32_t mode)
      : file_(std::move(file)), flags_(flags), mode_(mode) {}

  [[nodiscard]] const Hosts::File& file() const { return *file_; }
  /// The kernel's number for it. Set it once, before other threads know this object.
  void set_number(std::uint64_t number) { number_ = number; }
  [[nodiscard]] std::uint64_t number() const { return number_; }
  /// Call when the supervisor has a descriptor of it.
  void set_kept() { kept_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool is_kept() const { return kept_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t flags() const { return flags_; }
  [[nodiscard]] std::uint32_t mode() const { return mode_; }
  /// Call it once, before other threads know this object.
  /// @param backing  by which the kernel moves the data, or null
  /// @param lent  the server's descriptor of the file, lent for this or another open file, or null
  void set_backing(std::shared_ptr<const Passthrough::Backing> backing, std::shared_ptr<const LentFile> lent) {
    backing_ = std::move(backing);
    lent_ = std::move(lent);
  }
  [[nodiscard]] const std::shared_ptr<const LentFile>& lent() const { return lent_; }
  [[nodiscard]] const std::shared_ptr<const Passthrough::Backing>& backing() const { return backing_; }
  /// Call it once, before other threads know this object.
  void set_pages(std::shared_ptr<CachedPages> pages) { pages_ = std::move(pages); }
  [[nodiscard]] CachedPages& pages() { return *pages_; }
  /// The open keeps the kernel's pages. Call it before other threads know this object.
  void set_keeps_pages() { keeps_pages_ = true; }
  [[nodiscard]] bool keeps_pages() const { return keeps_pages_; }
  /// The open drops the kernel's pages. A read by this file shows that it has. Call it before other threads know this
  /// object.
  void record_at_read(const CachedPages::Opened& opened) { unrecorded_ = opened; }
  void note_read() {
    if (!unrecorded_ || is_recorded_.load(std::memory_order_relaxed)) return;
    if (!is_recorded_.exchange(true, std::memory_order_relaxed)) pages_->record(*unrecorded_);
  }
  [[nodiscard]] DelegationPolicy& delegation() { return delegation_; }
  /// Programs that read this open file in place.
  [[nodiscard]] DelegationPages& delegation_pages() { return delegation_pages_; }
  /// When to ask for a delegation for writing.
  [[nodiscard]] DelegationPolicy& writing() { return writing_; }
  [[nodiscard]] DeferredErrors& errors() { return errors_; }
  /// The kernel has dropped the attributes that came with a list. None are sent again while this file is open.
  void set_attributes_dropped() {
    attributes_dropped_.store(true, std::memory_order_release);  // DROPPED: after the drop
  }
  [[nodiscard]] bool are_attributes_dropped() const {
    return attributes_dropped_.load(std::memory_order_acquire);  // DROPPED
  }
  [[nodiscard]] bool writes() const { return (flags_ & layout::kFileOpenWrite) != 0; }
  [[nodiscard]] bool reads() const { return (flags_ & layout::kFileOpenRead) != 0; }
  [[nodiscard]] bool appends() const { return (flags_ & layout::kFileOpenAppend) != 0; }
  /// Whether a program may map it and change the mapping. This process does not see such changes.
  [[nodiscard]] bool may_be_mapped_to_write() const { return reads() && writes(); }
  /// Held while tickets for writing are made or ended.
  [[nodiscard]] std::mutex& ticket_mutex() { return ticket_mutex_; }
  /// Whether there may be such tickets. Requires the mutex.
  [[nodiscard]] bool& has_write_tickets() { return has_write_tickets_; }
  /// Whether each write must be durable when it returns.
  [[nodiscard]] bool synchronises() const {
    return (flags_ & (layout::kFileOpenSync | layout::kFileOpenDataSync)) != 0;
  }
  /// Whether reads and writes bypass the kernel's page cache. The page cache splits writes at page boundaries, but
  /// appends must be atomic. With passthrough, writes by the kernel would leave set-user-ID and set-group-ID bits.
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
  std::shared_ptr<CachedPages> pages_{};
  bool keeps_pages_ = false;
  std::optional<CachedPages::Opened> unrecorded_{};
  std::atomic<bool> is_recorded_{false};
  DelegationPolicy delegation_;
  DelegationPages delegation_pages_;
  DelegationPolicy writing_;
  DeferredErrors errors_;
  std::atomic<bool> attributes_dropped_{false};
  std::atomic<bool> kept_{false};
  std::mutex ticket_mutex_;
  bool has_write_tickets_ = false;
};

/// A directory that is open for reading.
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
