// SPDX-License-Identifier: Apache-2.0
#include "collect/directories.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "collect/permissions.hpp"

namespace wherry::tools {
namespace {

constexpr mode_t kModeBits = 07777;
constexpr timespec kTimeAsItIs{0, UTIME_OMIT};

// Also works for an O_PATH descriptor, which fchmod refuses.
bool change_mode(int descriptor, mode_t mode) {
  if (::fchmod(descriptor, mode) == 0) return true;
  return errno == EBADF && ::chmod(fmt::format("/proc/self/fd/{}", descriptor).c_str(), mode) == 0;
}

// Returns 0 or an errno value.
int apply(int descriptor, mode_t mode, timespec mtime) {
  const timespec times[2] = {{0, UTIME_OMIT}, mtime};
  return ::fchmod(descriptor, mode) == 0 && ::futimens(descriptor, times) == 0 ? 0 : errno;
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
  // Forgets modes that no shipper announced, because the owner may change them before the next shipper.
  std::erase_if(wanted_, [](const auto& entry) { return entry.second.mtime.tv_nsec == UTIME_OMIT; });
  if (settled_.size() >= kRemembered) settled_.clear();
  settled_.merge(std::exchange(wanted_, {}));
  return failures;
}

void Directories::announce(std::string_view path, std::uint32_t mode, timespec mtime) {
  const std::lock_guard lock(mutex_);
  settled_.erase(std::string(path));
  wanted_.insert_or_assign(std::string(path), Wanted{mode & kPermissions, mtime});
}

void Directories::touch(std::string_view path, int descriptor) {
  const std::lock_guard lock(mutex_);
  const auto found = settled_.find(path);
  const bool was_settled = found != settled_.end();
  if (was_settled) wanted_.insert(settled_.extract(found));
  if (!was_settled && (may_store(descriptor) || errno != EACCES)) return;
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return;
  const mode_t mode = status.st_mode & kModeBits;
  if ((mode & S_IRWXU) == S_IRWXU || !change_mode(descriptor, mode | S_IRWXU)) return;
  wanted_.try_emplace(std::string(path), Wanted{mode, kTimeAsItIs});
}

}  // namespace wherry::tools
