// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "channel/channel.hpp"
#include "common/content_hash.hpp"
#include "ship/layout/wire.hpp"
#include "ship/results.hpp"

namespace wherry::tools {

/// Converts files, directories and symbolic links into records. Reads the content of a file directly into the channel's
/// space, and hashes it there. Over a Wherry stream that space is the collector's ring.
class Shipment {
 public:
  struct Counts {
    std::atomic<std::uint64_t> files = 0;
    std::atomic<std::uint64_t> directories = 0;
    std::atomic<std::uint64_t> symlinks = 0;
    std::atomic<std::uint64_t> bytes = 0;  ///< data; holes do not count
  };

  /// @param counts  updated continuously; may be read from any thread
  Shipment(Channel& channel, const Results& results, Counts& counts)
      : channel_(channel), results_(results), counts_(counts) {}

  void hello(std::string_view label, std::uint64_t total_files, std::uint64_t total_bytes);
  void directory(std::string_view path, const struct stat& status);
  void symlink(std::string_view path, std::string_view target, const struct stat& status);
  /// Ships the content of the regular file open as `descriptor`. Returns why it could not be read completely. Empty: it
  /// was, or the collector refused it meanwhile.
  std::string file(std::string_view path, int descriptor, const struct stat& status);
  /// Sends the last record. `failures`: the number of paths that could not be read.
  void goodbye(std::uint64_t failures);

  [[nodiscard]] std::uint64_t last_id() const { return last_id_; }

 private:
  enum class Content { whole, refused, unreadable };

  Content content(int descriptor, const struct stat& status);
  Content to_the_end(int descriptor);
  Content extent(int descriptor, std::uint64_t offset, std::uint64_t end);
  bool data(int descriptor, std::uint64_t offset, std::uint64_t length);
  void send(const layout::ShipRecord& record, std::string_view path = {}, std::string_view target = {});

  Channel& channel_;
  const Results& results_;
  ContentHash hash_;
  Counts& counts_;
  std::uint64_t last_id_ = 0;
  std::uint64_t length_ = 0;  // of the current file
  int error_ = 0;             // why the content is unreadable
};

}  // namespace wherry::tools
