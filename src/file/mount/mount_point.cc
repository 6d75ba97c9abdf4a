// SPDX-License-Identifier: Apache-2.0
#include "file/mount/mount_point.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <wherry/error.hpp>

#include "base/unique_fd.hpp"

namespace wherry::file::mount {
namespace {

constexpr const char* kType = "fuse.wherry";

/// Decodes the names in /proc, where blanks and backslashes are octal.
std::string unescaped(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      result += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

/// Parses MAJOR:MINOR of mountinfo.
dev_t device_of(const std::string& text) {
  unsigned major = 0;
  unsigned minor = 0;
  char colon = 0;
  std::istringstream(text) >> major >> colon >> minor;
  return makedev(major, minor);
}

std::string resolved(const std::string& directory) {
  const std::unique_ptr<char, decltype(&std::free)> path(::realpath(directory.c_str(), nullptr), &std::free);
  if (path == nullptr) throw Error(errno, "mount on", directory, "name a directory that exists");
  return path.get();
}

/// Uses statfs, since the kernel may have cached the directory's attributes.
bool is_disconnected(const std::string& directory) {
  struct statfs found{};
  return ::statfs(directory.c_str(), &found) != 0 && errno == ENOTCONN;
}

/// Resolves the parent directory only, which answers even if the last component does not.
std::string resolved_though_stale(const std::string& directory) {
  std::string stripped = directory;
  while (stripped.size() > 1 && stripped.ends_with('/')) stripped.pop_back();
  const std::size_t slash = stripped.rfind('/');
  if (slash == std::string::npos) return resolved(".") + "/" + stripped;
  const std::string parent = slash == 0 ? "/" : resolved(stripped.substr(0, slash));
  return (parent == "/" ? "" : parent) + stripped.substr(slash);
}

/// Where systems have it. A search along PATH could lead through the mount, which this process may not serve any more.
constexpr const char* kFusermount = "/usr/bin/fusermount3";

int run_fusermount(const std::string& directory, bool lazy) {
  std::vector<std::string> words{"fusermount3", "-u", "-q", "--", directory};
  if (lazy) words.insert(words.begin() + 1, "-z");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  int error = ::posix_spawn(&child, kFusermount, nullptr, nullptr, arguments.data(), environ);
  if (error == ENOENT) error = ::posix_spawnp(&child, "fusermount3", nullptr, nullptr, arguments.data(), environ);
  if (error != 0) return error;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : EBUSY;
}

}  // namespace

std::optional<dev_t> mounted_device(const std::string& directory) {
  std::ifstream mounts("/proc/self/mountinfo");
  std::optional<dev_t> last;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string number;
    std::string parent;
    std::string device;
    std::string root;
    std::string on;
    std::string type;
    fields >> number >> parent >> device >> root >> on;
    if (unescaped(on) != directory) continue;
    while (fields >> type && type != "-") continue;
    fields >> type;
    last = type == kType ? std::optional(device_of(device)) : std::nullopt;
  }
  return last;
}

int unmount(const std::string& directory, bool lazy) {
  if (::umount2(directory.c_str(), UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0) return 0;
  return errno == EPERM ? run_fusermount(directory, lazy) : errno;
}

std::string prepare_mount_point(const std::string& directory) {
  if (is_disconnected(directory)) {
    const std::string stale = resolved_though_stale(directory);
    if (!mounted_device(stale)) throw Error(ENOTCONN, "mount on", directory, "unmount what is there: umount " + stale);
    if (const int error = unmount(stale, true); error != 0)
      throw Error(error, "unmount what an earlier wherry mount left on", directory, "umount --lazy " + stale);
  }
  std::string path = resolved(directory);
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) throw Error(errno, "mount on", directory, "name a directory that answers");
  if (!S_ISDIR(found.st_mode)) throw Error(ENOTDIR, "mount on", directory, "name a directory");
  if (mounted_device(path)) throw Error(EBUSY, "mount on", directory, "wherry mount is there already: umount " + path);
  return path;
}

void check_fuse(const std::string& directory) {
  const UniqueFd device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (device.valid()) return;
  const int error = errno;
  const char* const advice = error == EACCES
                                 ? "this user may not open /dev/fuse: let root run chmod 666 /dev/fuse, which "
                                   "gives no right to mount by itself, or mount as root"
                                 : "/dev/fuse is needed: load the kernel's module fuse; in a container, "
                                   "--device /dev/fuse --cap-add SYS_ADMIN";
  throw Error(error, "mount on", directory, std::string(advice) + ". Programs that use wherry::files need no mount");
}

}  // namespace wherry::file::mount
