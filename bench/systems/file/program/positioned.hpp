// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace wherry::bench::file {

/// A file with an offset of its own over one with positioned calls.
template <class File>
class Positioned {
 public:
  template <class... Arguments>
  explicit Positioned(Arguments&&... arguments) : file_(std::forward<Arguments>(arguments)...) {}

  void load(std::uint64_t bytes)
    requires requires(File& file) { file.load(bytes); }
  {
    file_.load(bytes);
  }
  void rewind() { offset_ = 0; }
  ssize_t read(std::span<std::byte> to) { return advance(read_at(offset_, to)); }
  ssize_t write(std::span<const std::byte> from) { return advance(write_at(offset_, from)); }
  ssize_t read_at(std::uint64_t offset, std::span<std::byte> to) { return file_.read_at(offset, to); }
  ssize_t write_at(std::uint64_t offset, std::span<const std::byte> from) { return file_.write_at(offset, from); }
  /// Throws std::system_error.
  void flush() { file_.flush(); }

 private:
  ssize_t advance(ssize_t moved) {
    if (moved > 0) offset_ += static_cast<std::uint64_t>(moved);
    return moved;
  }

  File file_;
  std::uint64_t offset_ = 0;
};

}  // namespace wherry::bench::file
