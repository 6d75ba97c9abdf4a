// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "file/client/lent_file.hpp"

namespace wherry::file {

/// The lent descriptors, by the file's handle. Thread-safe; never blocks.
class LentFiles {
 public:
  /// Null: the file has no lent descriptor.
  [[nodiscard]] std::shared_ptr<LentFile> find(std::uint64_t handle) const;
  /// @param file  null removes the descriptor
  void set(std::uint64_t handle, std::shared_ptr<LentFile> file);

 private:
  struct Lent {
    std::uint64_t handle = 0;
    std::shared_ptr<LentFile> file{};
  };

  mutable std::mutex mutex_;
  std::vector<Lent> lent_;  ///< index: the low half of the handle
};

}  // namespace wherry::file
