// SPDX-License-Identifier: Apache-2.0
#include "run/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/vfs.h>

#include <array>
#include <climits>
#include <exception>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>

#include "base/config.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "common/files_library.hpp"
#include "file/cache.hpp"
#include "file/cached_file_systems.hpp"
#include "file/card.hpp"
#include "file/visible.hpp"

namespace wherry::tools {
namespace {

void say(const std::string& line) {
  if (log::enabled(log::Level::warning)) fmt::print(stderr, "wherry run: {}\n", printable(line));
}

bool is_local(std::string_view path) { return path == "local" || path == "host"; }

/// Of WHERRY_FILE_PATHS, *.root=local,*.idx=comp.
bool are_all_local(const std::string& rules) {
  std::istringstream words(rules);
  for (std::string rule; std::getline(words, rule, ',');) {
    if (!is_local(std::string_view(rule).substr(rule.rfind('=') + 1))) return false;
  }
  return true;
}

/// The library that the program gets opens its files again, and a close ends the program's POSIX locks.
void say_what_the_cache_risks() {
  const std::string path = config::word(config::Key::file_path);
  const std::string rules = config::word(config::Key::file_paths);
  const bool all_local = is_local(path);
  if (all_local && are_all_local(rules)) return;
  say(
      fmt::format("{} can release POSIX locks (fcntl) that the program holds, which has broken databases; keep to "
                  "--file-path local for programs that lock files (docs/files.md)",
                  all_local ? "--file-paths " + rules : "--file-path " + path));
}

/// A container's own directories, for one, are on overlayfs.
void say_what_is_not_cached() {
  std::istringstream directories(config::word(config::Key::files));
  for (std::string directory; std::getline(directories, directory, ':');) {
    struct statfs system{};
    if (::statfs(directory.c_str(), &system) != 0 || file::can_be_cached(static_cast<long>(system.f_type))) continue;
    say(fmt::format(
        "{}: files of its file system are not cached, the kernel serves them; ext4, XFS, btrfs and tmpfs are (in a "
        "container: a volume, not its own image)",
        directory));
  }
}

}  // namespace

void serve_files(const std::string& program) {
  use_files_library();
  say_what_the_cache_risks();
  say_what_is_not_cached();
  try {
    file::ensure_card(std::filesystem::read_symlink("/proc/self/exe").string());
  } catch (const std::exception& error) {
    say(fmt::format("no cache of files, so that all file calls are the kernel's: {}", error.what()));
    return;
  }
  std::array<char, PATH_MAX> room{};
  const char* const path = file::find_in_path(program.c_str(), room.data());
  if (path == nullptr || file::look_at(AT_FDCWD, path, 0) == file::Sight::seen) return;
  // The mark stays when this process becomes the program.
  static constinit file::Cache cache;
  if (!cache.attach()) (void)cache.mark_all();
  say(fmt::format(
      "{}: its file calls cannot be seen (it is linked statically, of Go, or runs with other rights); while it "
      "runs nothing is cached",
      program));
}

}  // namespace wherry::tools
