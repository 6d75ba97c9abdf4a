// SPDX-License-Identifier: Apache-2.0
#include "run/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/vfs.h>

#include <array>
#include <climits>
#include <sstream>
#include <string>
#include <string_view>

#include "base/config.hpp"
#include "base/file_paths.hpp"
#include "base/log.hpp"
#include "base/preload_support.hpp"
#include "base/printable.hpp"
#include "common/files_library.hpp"
#include "file/mapped/mapped_file.hpp"

namespace wherry::tools {
namespace {

void say(const std::string& line) {
  if (log::enabled(log::Level::warning)) fmt::print(stderr, "wherry run: {}\n", printable(line));
}

/// Whether the directory is in a wherry mount without passthrough: its large transfers go to the host.
bool has_host_path(const std::string& directory) {
  return file::mapped::file_system_of_data(directory.c_str()) == file::mapped::kDelegatingMount;
}

bool any_has_host_path() {
  std::istringstream directories(config::word(config::Key::files));
  for (std::string directory; std::getline(directories, directory, ':');) {
    if (has_host_path(directory)) return true;
  }
  return false;
}

void say_of_path(std::string_view option, std::string_view word) {
  const FilePathWord* const known = find_file_path(word);
  if (known == nullptr) return;
  if (!known->now.empty()) {
    say(fmt::format("{} {}: the word is {} now; the old one will be refused by the next release", option, word,
                    known->now));
  } else if (known->path == files::Path::card || (known->path == files::Path::host && !any_has_host_path())) {
    say(
        fmt::format("{} {}: the files are this machine's, or passed through, which the kernel serves; choose auto, "
                    "cache or kernel",
                    option, word));
  }
}

void say_of_paths() {
  say_of_path("--file-path", config::word(config::Key::file_path));
  std::istringstream rules(config::word(config::Key::file_paths));
  for (std::string rule; std::getline(rules, rule, ',');) {
    say_of_path("--file-paths", std::string_view(rule).substr(rule.rfind('=') + 1));
  }
}

/// Warns of directories whose file system is not read in place. For example, a container's own directories are on
/// overlayfs.
void say_what_is_not_mapped() {
  std::istringstream directories(config::word(config::Key::files));
  for (std::string directory; std::getline(directories, directory, ':');) {
    struct statfs system{};
    if (::statfs(directory.c_str(), &system) != 0) continue;
    if (has_host_path(directory)) continue;
    if (file::mapped::can_map_file_system(file::mapped::file_system_of_data(directory.c_str()))) continue;
    say(fmt::format(
        "{}: files of its file system are not read in place, the kernel serves them; ext4, XFS, btrfs and tmpfs are, "
        "and mounts of wherry mount that say passthrough (in a container: a volume, not its own image)",
        directory));
  }
}

}  // namespace

void serve_files(const std::string& program) {
  use_files_library();
  say_of_paths();
  say_what_is_not_mapped();
  std::array<char, PATH_MAX> room{};
  const char* const path = find_in_path(program.c_str(), room.data());
  if (path == nullptr || preload_support_of(AT_FDCWD, path, 0) == PreloadSupport::supported) return;
  say(
      fmt::format("{}: cannot preload a library (the program is linked statically, is a Go program, or runs with other "
                  "rights); the kernel serves its files",
                  program));
}

}  // namespace wherry::tools
