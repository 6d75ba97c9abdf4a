// SPDX-License-Identifier: Apache-2.0
#include "directories.hpp"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>

namespace wherry::preload {
namespace {

constexpr std::size_t kMost = 16;
constexpr long kXfs = 0x58465342;  // XFS_SUPER_MAGIC, which no header of the kernel's has

// Written when the library is loaded.
constinit std::array<char, PATH_MAX> text{};
constinit std::array<std::string_view, kMost> names{};
constinit std::size_t count = 0;
constinit Path path = Path::automatic;

// Each is asked for when it is first needed; asked twice at the same moment the answer is the same.
constinit std::array<std::atomic<dev_t>, kMost> devices{};
constinit std::atomic<bool> have_devices{false};

bool can_be_cached(const char* directory) {
  struct statfs system{};
  if (statfs(directory, &system) != 0) return false;
  const auto type = static_cast<long>(system.f_type);
  return type == EXT4_SUPER_MAGIC || type == kXfs || type == BTRFS_SUPER_MAGIC || type == TMPFS_MAGIC;
}

void find_devices() {
  const int error = errno;
  for (std::size_t i = 0; i < count; i++) {
    struct stat status{};
    // The names end with a null byte in `text`.
    const char* const name = names[i].data();
    const bool usable = stat(name, &status) == 0 && S_ISDIR(status.st_mode) && can_be_cached(name);
    devices[i].store(usable ? status.st_dev : 0, std::memory_order_relaxed);
  }
  // DEVICES release: the numbers
  have_devices.store(true, std::memory_order_release);
  errno = error;
}

}  // namespace

void read_environment() noexcept {
  const char* const list = std::getenv("WHERRY_FILES");
  if (list == nullptr || std::strlen(list) >= text.size()) return;
  std::strcpy(text.data(), list);
  char* next = text.data();
  while (char* const name = strsep(&next, ":")) {
    std::string_view directory(name);
    while (directory.size() > 1 && directory.ends_with('/')) {
      name[directory.size() - 1] = '\0';
      directory.remove_suffix(1);
    }
    if (directory.starts_with('/') && count < kMost) names[count++] = directory;
  }
  const char* const word = std::getenv("WHERRY_FILE_PATH");
  const std::string_view chosen = word == nullptr ? "" : word;
  path = chosen == "local" ? Path::local : chosen == "comp" ? Path::comp : Path::automatic;
}

Path chosen_path() noexcept { return path; }

bool any_directories() noexcept { return count != 0; }

bool on_cached_device(const struct ::stat& status) noexcept {
  if (count == 0 || !S_ISREG(status.st_mode)) return false;
  // DEVICES acquire: the numbers
  if (!have_devices.load(std::memory_order_acquire)) find_devices();
  return std::any_of(devices.begin(), devices.begin() + count, [&](const std::atomic<dev_t>& device) {
    return device.load(std::memory_order_relaxed) == status.st_dev;
  });
}

bool lies_below(int fd) noexcept {
  const int error = errno;
  std::array<char, 32> link{"/proc/self/fd/"};
  *std::to_chars(link.data() + std::strlen(link.data()), std::prev(link.end()), fd).ptr = '\0';
  std::array<char, PATH_MAX> name{};
  const ssize_t length = readlink(link.data(), name.data(), name.size());
  errno = error;
  if (length <= 0 || static_cast<std::size_t>(length) == name.size()) return false;
  const std::string_view file(name.data(), static_cast<std::size_t>(length));
  return std::any_of(names.begin(), names.begin() + count, [&](std::string_view directory) {
    if (directory == "/") return true;
    return file.size() > directory.size() && file.starts_with(directory) && file[directory.size()] == '/';
  });
}

}  // namespace wherry::preload
