// SPDX-License-Identifier: Apache-2.0
// Maps a file for reading.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace wherry::merge {

/// The bytes of a file, valid while this object exists.
class FileImage {
 public:
  /// Throws std::system_error.
  explicit FileImage(const std::string& path);
  FileImage(const FileImage&) = delete;
  FileImage& operator=(const FileImage&) = delete;
  ~FileImage();

  [[nodiscard]] std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(memory_), size_}; }

 private:
  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace wherry::merge
