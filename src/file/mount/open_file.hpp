// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "file/mount/hosts.hpp"

namespace wherry::file::mount {

/// What a descriptor of the mount refers to. Any thread.
class OpenFile {
 public:
  /// @param flags  of layout::kFileOpen...
  OpenFile(std::unique_ptr<Hosts::File> file, std::uint32_t flags) : file_(std::move(file)), flags_(flags) {}

  [[nodiscard]] const Hosts::File& file() const { return *file_; }
  [[nodiscard]] bool writes() const { return (flags_ & layout::kFileOpenWrite) != 0; }
  [[nodiscard]] bool reads() const { return (flags_ & layout::kFileOpenRead) != 0; }
  [[nodiscard]] bool appends() const { return (flags_ & layout::kFileOpenAppend) != 0; }

 private:
  std::unique_ptr<Hosts::File> file_;
  std::uint32_t flags_;
};

/// A directory that is being read: the server's last answer, of which the kernel takes a page at a time.
class OpenDirectory {
 public:
  OpenDirectory(std::unique_ptr<Hosts::File> file, std::uint64_t device) : file_(std::move(file)), device_(device) {}

  [[nodiscard]] const Hosts::File& file() const { return *file_; }
  [[nodiscard]] std::uint64_t device() const { return device_; }
  /// Calls `add(entry)` with the entries behind `cookie`, until it returns false. Returns an errno value.
  template <class Add>
  int list(std::uint64_t cookie, Add add);

 private:
  std::unique_ptr<Hosts::File> file_;
  std::uint64_t device_;
  std::mutex mutex_;
  std::vector<Host::Entry> entries_;
  std::size_t next_ = 0;           ///< of `entries_`
  std::uint64_t next_cookie_ = 0;  ///< leads to it
};

template <class Add>
int OpenDirectory::list(std::uint64_t cookie, Add add) {
  const std::lock_guard lock(mutex_);
  // From its begin a directory is read anew.
  if (cookie != next_cookie_ || cookie == 0) entries_.clear();
  next_cookie_ = cookie;
  while (true) {
    if (next_ >= entries_.size()) entries_.clear();
    if (entries_.empty()) {
      next_ = 0;
      if (const int error = file_->use()->list(file_->handle(), next_cookie_, entries_); error != 0) return error;
      if (entries_.empty()) return 0;
    }
    const Host::Entry& entry = entries_[next_];
    if (!add(entry)) return 0;
    ++next_;
    next_cookie_ = entry.cookie;
  }
}

}  // namespace wherry::file::mount
