// SPDX-License-Identifier: Apache-2.0
#include "collect/directories.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <system_error>

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
    if (wanted.settled) continue;
    const UniqueFd directory = open(path);
    int error = directory.valid() ? apply(directory.get(), wanted.mode, wanted.mtime) : errno;
    if (error == 0) error = settled(directory.get());
    if (error != 0) failures.push_back({path, "setting its mode and time: " + std::system_category().message(error)});
    wanted.settled = true;
  }
  return failures;
}

void Directories::announce(std::string_view path, std::uint32_t mode, timespec mtime) {
  const std::lock_guard lock(mutex_);
  wanted_.insert_or_assign(std::string(path), Wanted{mode, mtime, false});
}

void Directories::touch(std::string_view path, int descriptor) {
  const std::lock_guard lock(mutex_);
  const auto found = wanted_.find(path);
  if (found == wanted_.end()) return;
  Wanted& wanted = found->second;
  const mode_t mode = wanted.mode & kPermissions;
  if (wanted.settled && (mode & kOwnerMayStore) != kOwnerMayStore) ::fchmod(descriptor, mode | S_IRWXU);
  wanted.settled = false;
}

}  // namespace wherry::tools
