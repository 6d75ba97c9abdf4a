// SPDX-License-Identifier: Apache-2.0
#include "file/client/lent_files.hpp"

#include <utility>

namespace wherry::file {

std::shared_ptr<LentFile> LentFiles::find(std::uint64_t handle) const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t index = handle & UINT32_MAX;
  return index < lent_.size() && lent_[index].handle == handle ? lent_[index].file : nullptr;
}

void LentFiles::set(std::uint64_t handle, std::shared_ptr<LentFile> file) {
  std::shared_ptr<LentFile> before;  // closed after the lock is released
  const std::lock_guard lock(mutex_);
  const std::uint64_t index = handle & UINT32_MAX;
  if (index >= lent_.size()) {
    if (file == nullptr) return;
    lent_.resize(index + 1);
  }
  before = std::exchange(lent_[index].file, std::move(file));
  lent_[index].handle = handle;
}

}  // namespace wherry::file
