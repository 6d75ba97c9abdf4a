// SPDX-License-Identifier: Apache-2.0
#include "collect/directories.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "collect/permissions.hpp"

namespace wherry::tools {
namespace {

constexpr mode_t kOwnerMayStore = S_IWUSR | S_IXUSR;

// Returns 0 or an errno value.
int apply(int descriptor, mode_t mode, timespec mtime) {
  const timespec times[2] = {{0, UTIME_OMIT}, mtime};
  return ::fchmod(descriptor, mode & kPermissions) == 0 && ::futimens(descriptor, times) == 0 ? 0 : errno;
}

}  // namespace

void Directories::enter() {
  const std::lock_guard lock(mutex_);
  ++shippers_;
}

std::vector<Failure> Directories::leave(const Open& open, const Settled& settled) {
  const std::lock_guard lock(mutex_);
  std::vector<Failure> failures;
  if (--shippers_ > 0) return failures;
  for (auto entry = wanted_.rbegin(); entry != wanted_.rend(); ++entry) {
    auto& [path, wanted] = *entry;
    const UniqueFd directory = open(path);
    int error = directory.valid() ? apply(directory.get(), wanted.mode, wanted.mtime) : errno;
    if (error == 0) error = settled(directory.get());
    if (error != 0) failures.push_back({path, "setting its mode and time: " + std::system_category().message(error)});
  }
  if (settled_.size() >= kRemembered) settled_.clear();
  settled_.merge(std::exchange(wanted_, {}));
  return failures;
}

void Directories::announce(std::string_view path, std::uint32_t mode, timespec mtime) {
  const std::lock_guard lock(mutex_);
  settled_.erase(std::string(path));
  wanted_.insert_or_assign(std::string(path), Wanted{mode, mtime});
}

void Directories::touch(std::string_view path, int descriptor) {
  const std::lock_guard lock(mutex_);
  const auto found = settled_.find(path);
  if (found == settled_.end()) return;
  const mode_t mode = found->second.mode & kPermissions;
  if ((mode & kOwnerMayStore) != kOwnerMayStore) ::fchmod(descriptor, mode | S_IRWXU);
  wanted_.insert(settled_.extract(found));
}

}  // namespace wherry::tools
