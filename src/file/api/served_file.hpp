// SPDX-License-Identifier: Apache-2.0
// A file of wherry::files: chooses the path of each call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <wherry/files.hpp>

#include "file/api/source.hpp"
#include "file/in_place/in_place_reader.hpp"

namespace wherry::file {

/// Properties of a file, fixed when it is opened.
struct ServedOptions {
  bool readable = false;
  bool writable = false;
  bool appends = false;
  files::Path path = files::Path::automatic;
};

/// Thread-safe. May throw std::bad_alloc if a host's file needs memory.
class ServedFile {
 public:
  using Path = files::Path;

  ServedFile(std::unique_ptr<Source> source, const ServedOptions& options);
  ServedFile(const ServedFile&) = delete;
  ServedFile& operator=(const ServedFile&) = delete;
  ~ServedFile();

  Result read(std::span<const iovec> to, std::uint64_t offset, Path path);
  Result write(std::span<const iovec> from, std::uint64_t offset, Path path);
  Result append(std::span<const std::byte> from);
  int flush(bool data_only) { return source_->flush(data_only); }
  int status(layout::FileStatus& status) { return source_->status(status); }
  int set_size(std::uint64_t size);
  int close();
  std::span<const std::byte> view(std::uint64_t offset, std::size_t length);

  [[nodiscard]] Path path() const { return path_.load(std::memory_order_relaxed); }
  void set_path(Path path) { path_.store(path, std::memory_order_relaxed); }

 private:
  [[nodiscard]] int refused(Path path) const;

  std::unique_ptr<Source> source_;
  std::optional<InPlaceReader> in_place_;  // for a readable file of this machine
  ServedOptions options_;
  bool remote_;
  std::atomic<Path> path_;
};

/// Whether a file of a host, or of this machine, has this path.
constexpr bool has_path(bool remote, files::Path path) {
  using files::Path;
  if (path == Path::automatic) return true;
  return remote ? path == Path::host : path == Path::kernel || path == Path::cache;
}

}  // namespace wherry::file
