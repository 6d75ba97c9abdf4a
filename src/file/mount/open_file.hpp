// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

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

/// A directory that is being read.
class OpenDirectory {
 public:
  OpenDirectory(std::unique_ptr<Hosts::File> file, std::uint64_t device) : file_(std::move(file)), device_(device) {}

  [[nodiscard]] const Hosts::File& file() const { return *file_; }
  [[nodiscard]] std::uint64_t device() const { return device_; }

 private:
  std::unique_ptr<Hosts::File> file_;
  std::uint64_t device_;
};

}  // namespace wherry::file::mount
