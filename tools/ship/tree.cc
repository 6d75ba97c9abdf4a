// SPDX-License-Identifier: Apache-2.0
#include "ship/tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>
#include <system_error>

namespace wherry::tools {
namespace {

constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

// The number of top levels of a tree whose directories stay open while their content is shipped.
constexpr int kOpenLevels = 32;

unsigned char type_of(mode_t mode) { return static_cast<unsigned char>(IFTODT(mode)); }

bool is_dot_or_dot_dot(std::string_view name) { return name == "." || name == ".."; }

std::string below(const std::string& folder, const std::string& entry) {
  return folder.empty() ? entry : folder + "/" + entry;
}

}  // namespace

void Tree::ship(int base, const std::string& path, const std::string& name) {
  // As usual, a slash at the end means the target of a symbolic link.
  const bool follow = path.ends_with('/') || name.empty();
  struct stat status{};
  if (::fstatat(base, path.c_str(), &status, follow ? 0 : AT_SYMLINK_NOFOLLOW) != 0) return fail(path, errno);
  if (name.empty() && !S_ISDIR(status.st_mode)) return fail(path, ENOTDIR);
  ship_entry(base, path.c_str(), name, type_of(status.st_mode), follow);
}

void Tree::ship_entry(int parent, const char* entry, const std::string& name, unsigned char type, bool follow) {
  if (name.size() > layout::kShipMaxPath) return fail(name, ENAMETOOLONG);
  switch (type) {
    case DT_REG:
      return ship_file(parent, entry, name);
    case DT_LNK:
      return ship_symlink(parent, entry, name);
    case DT_DIR:
      return ship_directory(parent, entry, name, follow);
    default:
      return failed_(name, "not a file, directory or symbolic link; skipped");
  }
}

void Tree::ship_file(int parent, const char* entry, const std::string& name) {
  // O_NONBLOCK: if a FIFO has replaced the file, open must not wait for its writer.
  const UniqueFd file(::openat(parent, entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status{};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) return fail(name, errno);
  if (!S_ISREG(status.st_mode)) return fail(name, EAGAIN);
  std::string problem = shipment_.file(name, file.get(), status);
  if (!problem.empty()) failed_(name, std::move(problem));
}

void Tree::ship_symlink(int parent, const char* entry, const std::string& name) {
  char target[layout::kShipMaxPath + 1];
  struct stat status{};
  const ssize_t length = ::readlinkat(parent, entry, target, sizeof target);
  if (length < 0 || ::fstatat(parent, entry, &status, AT_SYMLINK_NOFOLLOW) != 0) return fail(name, errno);
  if (static_cast<std::size_t>(length) == sizeof target) return fail(name, ENAMETOOLONG);
  shipment_.symlink(name, std::string_view(target, static_cast<std::size_t>(length)), status);
}

void Tree::ship_directory(int parent, const char* entry, const std::string& name, bool follow) {
  Level level{.descriptor = {}, .name = name};
  if (begin_directory(parent, entry, follow, level) && recursive_) ship_below(level, 0);
}

bool Tree::begin_directory(int parent, const char* entry, bool follow, Level& level) {
  level.descriptor.reset(::openat(parent, entry, kOpenDirectory | (follow ? 0 : O_NOFOLLOW)));
  if (!level.descriptor.valid() || ::fstat(level.descriptor.get(), &level.status) != 0) {
    fail(level.name.empty() ? entry : level.name, errno);
    return false;
  }
  // The destination keeps its own mode and time: it belongs to the user, and is not part of the shipment.
  if (!level.name.empty()) shipment_.directory(level.name, level.status);
  return true;
}

void Tree::ship_below(Level& level, int depth) {
  for (const std::string& folder : ship_all_but_directories(level)) {
    Level child{.descriptor = {}, .name = below(level.name, folder)};
    if (child.name.size() > layout::kShipMaxPath) {
      fail(child.name, ENAMETOOLONG);
      continue;
    }
    if (!begin_directory(level.descriptor.get(), folder.c_str(), false, child)) continue;
    if (depth >= kOpenLevels) level.descriptor.reset();
    ship_below(child, depth + 1);
    if (depth >= kOpenLevels && !reopen(level, child)) return;
  }
}

std::vector<std::string> Tree::ship_all_but_directories(const Level& level) {
  std::vector<std::string> folders;
  const int descriptor = level.descriptor.get();
  const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);  // for the listing
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(copy), ::closedir);
  if (!listing) {
    fail(level.name, errno);
    UniqueFd(copy).reset();
    return folders;
  }
  for (;;) {
    errno = 0;
    const dirent* found = ::readdir(listing.get());
    if (found == nullptr) break;
    if (is_dot_or_dot_dot(found->d_name)) continue;
    struct stat status{};
    if (found->d_type == DT_UNKNOWN && ::fstatat(descriptor, found->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
      fail(below(level.name, found->d_name), errno);
      continue;
    }
    const unsigned char type = found->d_type == DT_UNKNOWN ? type_of(status.st_mode) : found->d_type;
    if (type == DT_DIR) {
      folders.emplace_back(found->d_name);
    } else {
      ship_entry(descriptor, found->d_name, below(level.name, found->d_name), type, false);
    }
  }
  if (errno != 0) fail(level.name, errno);
  return folders;
}

// Opens the directory again through its child. The child may have been moved meanwhile.
bool Tree::reopen(Level& level, const Level& child) {
  level.descriptor.reset(::openat(child.descriptor.get(), "..", kOpenDirectory));
  struct stat found{};
  if (level.descriptor.valid() && ::fstat(level.descriptor.get(), &found) == 0 && found.st_dev == level.status.st_dev &&
      found.st_ino == level.status.st_ino) {
    return true;
  }
  level.descriptor.reset();
  failed_(level.name, "its content was moved during the read; ship it again");
  return false;
}

void Tree::fail(const std::string& name, int error) { failed_(name, std::system_category().message(error)); }

std::string base_name(const std::string& path) {
  std::string_view rest = path;
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const std::size_t slash = rest.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? rest : rest.substr(slash + 1);
  return is_dot_or_dot_dot(last) ? std::string() : std::string(last);
}

std::string plain_name(const std::string& path) {
  std::string result = path.starts_with('/') ? "/" : "";
  for (std::string_view rest = path; !rest.empty();) {
    const std::size_t slash = rest.find('/');
    const std::string_view component = rest.substr(0, slash);
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
    if (component.empty() || component == ".") continue;
    if (!result.empty() && result != "/") result += '/';
    result += component;
  }
  return result;
}

}  // namespace wherry::tools
