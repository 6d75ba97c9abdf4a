// SPDX-License-Identifier: Apache-2.0
// A file of wherry::files: which path each call goes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <wherry/files.hpp>

#include "file/cache.hpp"
#include "file/comp.hpp"
#include "file/os_client.hpp"
#include "file/path_choice.hpp"
#include "file/source.hpp"

namespace wherry::file {

/// What is known of a file when it is opened.
struct ServedOptions {
  bool readable = false;
  bool writable = false;
  bool appends = false;
  wherry::files::Path path = wherry::files::Path::automatic;
};

/// From any thread. May throw std::bad_alloc where a host's file needs memory.
class ServedFile {
 public:
  using Path = wherry::files::Path;
  using Reason = wherry::files::Reason;

  ServedFile(std::unique_ptr<Source> source, const Look& look, Cache& cache, const ServedOptions& options);
  ServedFile(const ServedFile&) = delete;
  ServedFile& operator=(const ServedFile&) = delete;
  ~ServedFile();

  Result read(std::span<std::byte> to, std::uint64_t offset, Path path);
  Result read(std::span<const iovec> to, std::uint64_t offset, Path path);
  Result write(std::span<const iovec> from, std::uint64_t offset, Path path);
  Result append(std::span<const std::byte> from);
  int flush(bool data_only) { return source_->flush(data_only); }
  int look(Look& look) { return source_->look(look, false); }
  int set_size(std::uint64_t size);
  int close();
  Glimpse view(std::uint64_t offset, std::size_t length);

  [[nodiscard]] Path path() const { return path_.load(std::memory_order_relaxed); }
  void set_path(Path path);

 private:
  void warn_of_lost_locks(Path path) const;
  [[nodiscard]] int refused(Path path) const;
  std::optional<Result> read_by_card(std::span<const iovec> to, std::uint64_t offset);
  Result read_straight(std::span<std::byte> to, std::uint64_t offset, Path path, Reason reason);
  Result read_uncached(std::span<std::byte> to, std::uint64_t offset, int error);
  Result read_filling(std::span<std::byte> to, std::uint64_t offset, Reason reason);
  Result read_automatic(std::span<std::byte> to, std::uint64_t offset);
  Result read_missing(std::span<std::byte> to, std::uint64_t offset);
  /// One call in so many is looked at more closely: whether this is one.
  bool is_sample(std::size_t bytes);

  std::unique_ptr<Source> source_;
  std::optional<OsFile> os_;
  CompFile comp_;
  PathChoice& choice_;
  ServedOptions options_;
  bool remote_;
  Path straight_;  // what the source's own call is named
  std::atomic<Path> path_;
  struct alignas(64) Calls {
    std::atomic<std::uint32_t> count{0};
  };
  std::array<Calls, 4> calls_;  // threads seldom meet on one
};

/// Counts of this process.
void count_choice(wherry::files::Path path, wherry::files::Reason reason);
wherry::files::Choices choices_so_far();

}  // namespace wherry::file
