// SPDX-License-Identifier: Apache-2.0
#include "directories.hpp"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <span>
#include <string_view>

#include "base/file_paths.hpp"
#include "base/loaded_libraries.hpp"
#include "file/mapped/mapped_file.hpp"
#include "kept_text.hpp"

namespace wherry::preload {
namespace {

constexpr std::size_t kMost = 16;

// Written when the library is loaded.
WHERRY_START_DATA std::array<std::string_view, kMost> names{};
WHERRY_START_DATA std::size_t count = 0;
WHERRY_START_DATA Path path = Path::automatic;
WHERRY_START_DATA Path mount_path = Path::kernel;  // `path` if WHERRY_FILE_PATH is set
WHERRY_START_DATA std::atomic<std::size_t> least_bytes_direct{SIZE_MAX};

struct Rule {
  std::string_view ending;
  Path path = Path::kernel;
};
constinit std::array<Rule, 64> rules{};
WHERRY_START_DATA std::size_t rule_count = 0;

// Filled at first use, perhaps by two threads at the same time, with the same numbers.
constinit std::array<std::atomic<dev_t>, kMost> devices{};
constinit std::array<std::atomic<dev_t>, kMost> mounts{};
WHERRY_START_DATA std::atomic<bool> have_devices{false};

bool is_mount(const char* directory) {
  struct statfs system{};
  return statfs(directory, &system) == 0 && system.f_type == FUSE_SUPER_MAGIC;
}

void find_devices() {
  const int error = errno;
  for (std::size_t i = 0; i < count; i++) {
    struct stat status{};
    // Each name is null-terminated.
    const char* const name = names[i].data();
    const bool is_there = stat(name, &status) == 0 && S_ISDIR(status.st_mode);
    const long type = is_there ? file::mapped::file_system_of_data(name) : 0;
    const bool maps_all = file::mapped::can_map_file_system(type);
    const bool maps = maps_all || type == file::mapped::kDelegatingMount;
    devices[i].store(maps ? status.st_dev : 0, std::memory_order_relaxed);
    mounts[i].store(is_there && !maps_all && is_mount(name) ? status.st_dev : 0, std::memory_order_relaxed);
  }
  // DEVICES release: the numbers
  have_devices.store(true, std::memory_order_release);
  errno = error;
}

/// Returns the path that a word names; the kernel's if it names none.
Path path_of(std::string_view word) {
  const FilePathWord* const known = find_file_path(word);
  return known == nullptr ? Path::kernel : known->path;
}

std::size_t least_of(Path of) {
  if (of == Path::host) return 1;
  return of == Path::automatic ? kLeastOfAutomatic : SIZE_MAX;
}

/// Returns the next word of a list, terminated in place, or null. strsep would cost each process two pages of code.
char* take_word(char*& list, char separator) {
  char* const word = list;
  if (word == nullptr) return nullptr;
  while (*list != separator && *list != '\0') list++;
  if (*list == '\0') {
    list = nullptr;
  } else {
    *list++ = '\0';
  }
  return word;
}

/// Reads WHERRY_FILE_PATHS and skips what is no rule: `wherry run` has reported that.
void read_rules() {
  const char* const list = std::getenv("WHERRY_FILE_PATHS");
  char* next = list == nullptr ? nullptr : keep_text(list);
  while (char* const word = take_word(next, ',')) {
    const char* const sign = std::strrchr(word, '=');
    if (word[0] != '*' || sign == nullptr || rule_count == rules.size()) continue;
    rules[rule_count++] = {.ending = {word + 1, static_cast<std::size_t>(sign - word - 1)}, .path = path_of(sign + 1)};
  }
}

/// Returns the name by which a descriptor's file was opened. Empty if it has none, or one that is too long.
std::string_view name_of(int fd, std::span<char, PATH_MAX> room) {
  const int error = errno;
  std::array<char, 32> link{"/proc/self/fd/"};
  *std::to_chars(link.data() + std::strlen(link.data()), std::prev(link.end()), fd).ptr = '\0';
  const ssize_t length = readlink(link.data(), room.data(), room.size());
  errno = error;
  if (length <= 0 || static_cast<std::size_t>(length) == room.size()) return {};
  return {room.data(), static_cast<std::size_t>(length)};
}

bool lies_below(std::string_view file) {
  if (file.empty()) return false;
  return std::any_of(names.begin(), names.begin() + count, [&](std::string_view directory) {
    if (directory == "/") return true;
    return file.size() > directory.size() && file.starts_with(directory) && file[directory.size()] == '/';
  });
}

/// Returns the path of a descriptor's file by the rules, if it lies below one of the directories.
std::optional<Path> path_by_name(int fd, Path otherwise) {
  std::array<char, PATH_MAX> room{};
  const std::string_view name = name_of(fd, room);
  if (!lies_below(name)) return std::nullopt;
  for (const Rule& rule : std::span(rules).first(rule_count)) {
    if (name.ends_with(rule.ending)) return rule.path;
  }
  return otherwise;
}

}  // namespace

void read_environment() noexcept {
  const char* const list = std::getenv("WHERRY_FILES");
  char* next = list == nullptr ? nullptr : keep_text(list);
  while (char* const name = take_word(next, ':')) {
    std::string_view directory(name);
    while (directory.size() > 1 && directory.ends_with('/')) {
      name[directory.size() - 1] = '\0';
      directory.remove_suffix(1);
    }
    if (directory.starts_with('/') && count < kMost) names[count++] = directory;
  }
  const char* const word = std::getenv("WHERRY_FILE_PATH");
  const std::string_view chosen = word == nullptr || *word == '\0' ? "auto" : word;
  path = path_of(chosen);
  read_rules();
  // A sanitizer checks the buffer of each read in a function of its own, which the hook would bypass.
  if ((path != Path::kernel || rule_count != 0) &&
      (any_library_defines("__asan_init") || any_library_defines("__tsan_init"))) {
    path = Path::kernel;
    rule_count = 0;
  }
  if (word != nullptr && *word != '\0') mount_path = path;
  allow_direct(mount_path);
  for (const Rule& rule : std::span(rules).first(rule_count)) allow_direct(rule.path);
}

Path chosen_path() noexcept { return in_place(path); }

std::size_t least_direct() noexcept { return least_bytes_direct.load(std::memory_order_relaxed); }

void allow_direct(Path allowed) noexcept {
  const std::size_t least = count == 0 ? SIZE_MAX : least_of(allowed);
  if (least < least_direct()) least_bytes_direct.store(least, std::memory_order_relaxed);
}

bool any_directories() noexcept { return count != 0; }

bool on_cached_device(const struct ::stat& status) noexcept {
  if (count == 0 || !S_ISREG(status.st_mode)) return false;
  // DEVICES acquire: the numbers
  if (!have_devices.load(std::memory_order_acquire)) find_devices();
  return std::any_of(devices.begin(), devices.begin() + count, [&](const std::atomic<dev_t>& device) {
    return device.load(std::memory_order_relaxed) == status.st_dev;
  });
}

bool on_mount_device(unsigned major, unsigned minor) noexcept {
  if (!have_devices.load(std::memory_order_acquire)) find_devices();  // DEVICES acquire: the numbers
  return std::any_of(mounts.begin(), mounts.begin() + count, [&](const std::atomic<dev_t>& device) {
    return device.load(std::memory_order_relaxed) == makedev(major, minor);
  });
}

bool any_rules() noexcept { return rule_count != 0; }

std::optional<Path> path_below(int fd) noexcept { return path_by_name(fd, path); }

std::optional<Path> path_past_mount(int fd) noexcept { return path_by_name(fd, mount_path); }

}  // namespace wherry::preload
