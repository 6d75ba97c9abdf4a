// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace wherry::bench::file {

/// The files of one directory by way of libfuse: what `wherry bench file` has beside Wherry. The file system knows the
/// regular files that stand in the directory itself, and is mounted over it.
class Passthrough {
 public:
  enum class Cache : std::uint8_t {
    none,     ///< each call of a program is one request, or several for a long one (direct_io)
    kernel,   ///< the page cache, written back at close and fsync, and let go at an open that finds the file changed
    through,  ///< the same, but each write is a request
  };

  /// Mounts. Throws std::runtime_error with libfuse's words if it cannot.
  Passthrough(const std::string& folder, Cache cache);
  Passthrough(const Passthrough&) = delete;
  Passthrough& operator=(const Passthrough&) = delete;
  /// Unmounts.
  ~Passthrough();

  /// Serves, with as many threads as there are requests at a time, until it is unmounted. Returns an exit status.
  int run();

  /// Of libfuse.
  static const char* version();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wherry::bench::file
