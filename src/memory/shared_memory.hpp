// SPDX-License-Identifier: Apache-2.0
// Memory of this process that the peers of any number of connections read in place: see Offer::shared.
// May include: base.
#pragma once

#include <cstddef>
#include <span>

#include "base/unique_fd.hpp"

namespace wherry::memory {

/// A sealed memfd that is mapped here for reading and writing. It can never be resized, or mapped for writing again.
/// Its pages take memory once they are written to, and stay as long as a mapping of them exists.
class SharedMemory {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 40;

  /// Zeroed. Throws Error: EINVAL for a size that is 0, above kMostBytes or no multiple of the page size; EMFILE,
  /// ENOMEM.
  explicit SharedMemory(std::size_t bytes);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] int descriptor() const { return memfd_.get(); }

 private:
  UniqueFd memfd_;
  std::span<std::byte> bytes_;
};

}  // namespace wherry::memory
