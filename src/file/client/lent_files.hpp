// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "file/client/lent_file.hpp"

namespace wherry::file {

/// Descriptors of the server's by the handles of the files that they are of. Any thread; nothing blocks.
class LentFiles {
 public:
  /// Null: none.
  [[nodiscard]] std::shared_ptr<LentFile> find(std::uint64_t handle) const;
  /// @param file  null: none any more
  void set(std::uint64_t handle, std::shared_ptr<LentFile> file);

 private:
  struct Lent {
    std::uint64_t handle = 0;
    std::shared_ptr<LentFile> file{};
  };

  mutable std::mutex mutex_;
  std::vector<Lent> lent_;  ///< by the low half of the handle
};

}  // namespace wherry::file
