// SPDX-License-Identifier: Apache-2.0
#include "collect/symlink.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace wherry::tools {
namespace {

void replace(const Place& place, const std::string& target) {
  Staging& staging = place.directory->file_system->staging();
  const std::string name = staging.new_name();
  if (::symlinkat(target.c_str(), staging.get(), name.c_str()) != 0) throw Refusal(errno);
  if (::renameat(staging.get(), name.c_str(), place.directory->get(), place.name.c_str()) == 0) return;
  const int error = errno;
  ::unlinkat(staging.get(), name.c_str(), 0);
  throw error == EISDIR ? Refusal(EISDIR, "a directory has this name in the destination") : Refusal(error);
}

}  // namespace

void store_symlink(const Place& place, const std::string& target, timespec mtime) {
  if (target.empty() || target.find('\0') != std::string::npos) {
    throw Refusal(EINVAL, "its target is empty or has a zero byte in it");
  }
  if (::symlinkat(target.c_str(), place.directory->get(), place.name.c_str()) != 0) {
    if (errno != EEXIST) throw Refusal(errno);
    replace(place, target);
  }
  const timespec times[2] = {{0, UTIME_OMIT}, mtime};
  if (::utimensat(place.directory->get(), place.name.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0) throw Refusal(errno);
}

}  // namespace wherry::tools
