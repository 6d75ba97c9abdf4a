// SPDX-License-Identifier: Apache-2.0
#include "file/api/open_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

#include <wherry/address.hpp>

#include "base/config.hpp"
#include "base/file_paths.hpp"
#include "base/log.hpp"
#include "base/not_cancelled.hpp"
#include "file/api/host_source.hpp"
#include "file/api/kernel_source.hpp"
#include "file/wire/status.hpp"

namespace wherry::file {
namespace {

using wherry::files::Options;
using wherry::files::Path;

constexpr int kFlags = O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_SYNC | O_DSYNC | O_NOFOLLOW | O_DIRECTORY |
                       O_CLOEXEC | O_LARGEFILE | O_NOCTTY;
constexpr std::string_view kScheme = "wherry";

/// A file's name, split.
struct Name {
  std::string whole;
  std::string address;  // empty: a path on this machine
  std::string path;

  [[nodiscard]] bool is_remote() const { return !address.empty(); }
};

Name parse(std::string_view text, const char* what) {
  Name name{.whole = std::string(text), .address = {}, .path = std::string(text)};
  if (text.find('\0') != std::string_view::npos) {
    throw Error(EINVAL, what, std::string(text.substr(0, text.find('\0'))),
                "remove the zero byte: no file name contains one");
  }
  const std::size_t authority = text.find("://");
  const bool remote = authority != std::string_view::npos && text.starts_with(kScheme) &&
                      (authority == kScheme.size() || text[kScheme.size()] == '+');
  if (!remote) return name;
  const std::size_t slash = text.find('/', authority + 3);
  if (slash == std::string_view::npos) {
    throw Error(EINVAL, what, name.whole, "the file's path follows the address: wherry://NODE:PORT/PATH");
  }
  const Address address = Address::parse(text.substr(0, slash));
  if (!address.node || !address.port) {
    throw Error(EINVAL, what, name.whole, "name the node and the port that wherry serve listens on");
  }
  name.address = address.to_string();
  const std::size_t begin = text.find_first_not_of('/', slash);
  name.path = begin == std::string_view::npos ? "." : std::string(text.substr(begin));
  return name;
}

std::string advice_on(int error, const char* what, const Name& name) {
  std::string advice;
  switch (error) {
    case ENOENT:
      if (!name.is_remote() && name.whole.starts_with(kScheme)) {
        advice = "a file of a host is named wherry://NODE:PORT/PATH";
      } else {
        advice = "check the name";
        if (what == std::string_view("open")) advice += "; O_CREAT creates the file";
      }
      break;
    case EACCES:
    case EPERM:
      advice = "this user may not: check the permissions of the file, and of the directories in its path";
      break;
    case EROFS:
      advice = name.is_remote() ? "its server serves it read-only" : "its file system is mounted read-only";
      break;
    case EXDEV:
      advice = "its name leads out of the served directory";
      break;
    case EMFILE:
    case ENFILE:
      advice = "close files, or raise the limit of open files (ulimit -n)";
      if (name.is_remote()) advice += " of this program, or of its server";
      break;
    case EIO:
      advice = name.is_remote() ? "its server cannot be reached, or its disk fails: see that server's log"
                                : "its disk fails: see the kernel's log (dmesg)";
      break;
    case ESTALE:
      advice = "its name now leads to another file, or to none: open it again";
      break;
    case EISDIR:
      advice = "it is a directory: open it with O_RDONLY, or remove it with rmdir";
      break;
    case ENOTDIR:
      advice = "a component of its path is not a directory: check the name";
      break;
    case EEXIST:
      advice = "it exists already: omit O_EXCL to open it";
      break;
    case ELOOP:
      advice = "too many symbolic links, or the last component is one and O_NOFOLLOW is set";
      break;
    case ETXTBSY:
      advice = "it is a running program: end it, or write another file and rename that";
      break;
    case ENOSPC:
    case EDQUOT:
      advice = "free space on its file system, or raise the quota";
      break;
    default:
      break;
  }
  return advice;
}

[[noreturn]] void fail(int error, const char* what, const Name& name) {
  throw Error(error, what, name.whole, advice_on(error, what, name));
}

std::shared_ptr<HostFiles> connected(const char* what, const Name& name, const Options& options) {
  try {
    return HostFiles::get(name.address, options.timeout);
  } catch (const Error& error) {
    if (error.code().value() != ECONNREFUSED) throw;
    throw Error(ECONNREFUSED, what, name.whole,
                "no server listens there: wherry serve --root DIR --listen " + name.address);
  }
}

/// Reads the umask without the umask() call, which would change it for a moment.
unsigned umask_of_process() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Umask:")) return static_cast<unsigned>(std::strtoul(line.c_str() + 6, nullptr, 8));
  }
  return 077;  // unknown: the mask with the fewest permissions
}

std::uint32_t host_flags(int flags) {
  using namespace layout;
  const int access = flags & O_ACCMODE;
  std::uint32_t asked = 0;
  const auto add = [&](bool set, std::uint32_t bit) { asked |= set ? bit : 0; };
  add(access != O_WRONLY, kFileOpenRead);
  add(access != O_RDONLY, kFileOpenWrite);
  add((flags & O_APPEND) != 0, kFileOpenAppend);
  add((flags & O_CREAT) != 0, kFileOpenCreate);
  add((flags & O_EXCL) != 0, kFileOpenExclusive);
  add((flags & O_DIRECTORY) != 0, kFileOpenDirectory);
  add((flags & O_NOFOLLOW) != 0, kFileOpenNoFollow);
  add((flags & O_SYNC) == O_SYNC, kFileOpenSync);
  add((flags & O_SYNC) == O_DSYNC, kFileOpenDataSync);
  return asked;
}

void say_once(const std::string& word, std::string_view now) {
  static std::atomic<bool> said{false};
  if (said.exchange(true, std::memory_order_relaxed)) return;
  log::write(log::Level::warning, "WHERRY_FILE_PATH=" + word + ": the word is " + std::string(now) +
                                      " now; the old one will be refused by the next release");
}

/// The path in the environment applies to all files. If a file does not have it, its other path is used.
Path path_of(const Options& options, const Name& name) {
  if (options.path) {
    if (has_path(name.is_remote(), *options.path)) return *options.path;
    throw Error(EOPNOTSUPP, "open", name.whole,
                name.is_remote() ? "a file of a host has the paths host and auto"
                                 : "a file of this machine has the paths kernel, cache and auto");
  }
  const std::string word = config::word(config::Key::file_path);
  const FilePathWord* const said = find_file_path(word);
  if (said != nullptr && !said->now.empty()) say_once(word, said->now);
  const Path path = said == nullptr ? Path::automatic : said->path;
  if (has_path(name.is_remote(), path)) return path;
  return name.is_remote() ? Path::host : Path::kernel;
}

std::unique_ptr<Source> open_there(const Name& name, int flags, unsigned mode, const Options& options,
                                   layout::FileStatus& status) {
  std::unique_ptr<Source> source;
  int error = 0;
  if (name.is_remote()) {
    auto files = connected("open", name, options);
    const std::uint32_t permissions = (flags & O_CREAT) != 0 ? mode & 07777 & ~umask_of_process() : 0;
    source = std::make_unique<HostSource>(std::move(files), name.path, host_flags(flags), permissions, error, status);
  } else {
    UniqueFd file(::open(name.path.c_str(), (flags & ~O_TRUNC) | O_CLOEXEC | O_NOCTTY, mode));
    if (!file.valid()) fail(errno, "open", name);
    source = std::make_unique<KernelSource>(std::move(file));
    error = source->status(status);
  }
  if (error != 0) fail(error, "open", name);
  return source;
}

}  // namespace

Opening open_file(std::string_view text, int flags, unsigned mode, const Options& options) {
  const NotCancelled here;
  const Name name = parse(text, "open");
  const int access = flags & O_ACCMODE;
  if (access == O_ACCMODE) throw Error(EINVAL, "open", name.whole, "use O_RDONLY, O_WRONLY or O_RDWR");
  if ((flags & ~kFlags) != 0) {
    throw Error(EINVAL, "open", name.whole, "omit flags that Wherry does not support, such as O_DIRECT");
  }
  if ((flags & O_TRUNC) != 0 && access == O_RDONLY) {
    throw Error(EINVAL, "open", name.whole, "O_TRUNC needs O_WRONLY or O_RDWR");
  }
  Opening opening;
  opening.options = {.readable = access != O_WRONLY,
                     .writable = access != O_RDONLY,
                     .appends = (flags & O_APPEND) != 0,
                     .path = path_of(options, name)};
  layout::FileStatus status{};
  opening.source = open_there(name, flags, mode, options, status);
  // As the kernel does, truncates regular files only: a terminal or /dev/null has no size to set.
  if ((flags & O_TRUNC) == 0 || !S_ISREG(status.mode)) return opening;
  if (const int error = opening.source->set_size(0); error != 0) fail(error, "truncate", name);
  return opening;
}

layout::FileStatus look_at_name(std::string_view text, const Options& options) {
  const NotCancelled here;
  const Name name = parse(text, "stat");
  layout::FileStatus status{};
  int error = 0;
  if (name.is_remote()) {
    const auto files = connected("stat", name, options);
    error = files->host().names().status(name.path, true, status);
    if (error == 0) status.device = files->device_of(status);
  } else {
    const UniqueFd file(::open(name.path.c_str(), O_PATH | O_CLOEXEC));
    error = file.valid() ? status_of(file.get(), status) : errno;
  }
  if (error != 0) fail(error, "stat", name);
  return status;
}

void remove_name(std::string_view text, const Options& options) {
  const NotCancelled here;
  const Name name = parse(text, "remove");
  const int error = name.is_remote() ? connected("remove", name, options)->host().names().remove(name.path)
                                     : (::unlink(name.path.c_str()) == 0 ? 0 : errno);
  if (error != 0) fail(error, "remove", name);
}

}  // namespace wherry::file
