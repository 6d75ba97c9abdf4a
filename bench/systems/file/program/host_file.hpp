// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "file/host.hpp"

namespace wherry::bench::file {

/// A file of the host's, by a connection of its own to its server. Calls return what the kernel's do.
class HostFile {
 public:
  /// `name`: relative to what is served. Throws std::system_error, and wherry::Error if there is no server.
  HostFile(const std::string& address, const std::string& name, bool writes);

  void rewind() { offset_ = 0; }
  ssize_t read(std::span<std::byte> to) { return advance(read_at(offset_, to)); }
  ssize_t write(std::span<const std::byte> from) { return advance(write_at(offset_, from)); }
  ssize_t read_at(std::uint64_t offset, std::span<std::byte> to);
  ssize_t write_at(std::uint64_t offset, std::span<const std::byte> from);
  /// Throws std::system_error.
  void flush();

 private:
  ssize_t advance(ssize_t moved);

  ::wherry::file::Host host_;
  ::wherry::file::Host::Handle file_;
  std::uint64_t offset_ = 0;
};

}  // namespace wherry::bench::file
