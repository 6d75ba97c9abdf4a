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
