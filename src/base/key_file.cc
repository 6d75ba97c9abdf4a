// SPDX-License-Identifier: Apache-2.0
#include "base/key_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include <wherry/error.hpp>

#include "base/unique_fd.hpp"

namespace wherry {
namespace {

// A key file: the version of its format, the key in hexadecimal, and a newline.
constexpr std::string_view kPrefix = "wherry-key-1:";
constexpr std::string_view kDigits = "0123456789abcdef";
constexpr std::size_t kFileBytes = kPrefix.size() + 2 * sizeof(Key) + 1;
constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

std::string text_of(const Key& key) {
  std::string text(kPrefix);
  for (const std::byte byte : key) {
    text += kDigits[std::to_integer<std::size_t>(byte) >> 4];
    text += kDigits[std::to_integer<std::size_t>(byte) & 15];
  }
  return text + "\n";
}

void check_owner_and_mode(int fd, const std::string& file) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) throw Error(errno, "read key", file, "");
  if (!S_ISREG(status.st_mode)) throw Error(EINVAL, "read key", file, "WHERRY_KEY names a file made by wherry key");
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    throw Error(EACCES, "read key", file,
                "the file belongs to user " + std::to_string(status.st_uid) + "; use a copy of your own");
  }
  if ((status.st_mode & kOthers) != 0) {
    throw Error(EACCES, "read key", file, "other users may read or write the key; make it private: chmod 600 " + file);
  }
}

}  // namespace

void make_key_file(const std::string& file) {
  Key key{};
  // Up to 256 bytes are returned whole, or not at all.
  if (::getrandom(key.data(), key.size(), 0) < 0) throw Error(errno, "make key", file, "no random numbers");
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!fd.valid()) {
    const int error = errno;
    throw Error(error, "make key", file,
                error == EEXIST ? "a key is never overwritten; use another name, or remove the file first"
                                : "name a file in a directory that this user may write to");
  }
  const std::string text = text_of(key);
  const bool is_written = ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!is_written || ::fchmod(fd.get(), S_IRUSR | S_IWUSR) != 0 || ::fsync(fd.get()) != 0) {
    const int error = errno;
    ::unlink(file.c_str());
    throw Error(error, "make key", file, "free space there, or name another directory");
  }
}

Key read_key_file(const std::string& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) {
    throw Error(errno, "read key", file, "make one with: wherry key " + file + "; and copy it to each host");
  }
  check_owner_and_mode(fd.get(), file);
  std::string text(kFileBytes + 1, '\0');
  const ssize_t bytes = ::read(fd.get(), text.data(), text.size());
  if (bytes < 0) throw Error(errno, "read key", file, "");
  text.resize(static_cast<std::size_t>(bytes));
  if (text.ends_with('\n')) text.pop_back();
  const auto refuse = [&file] {
    throw Error(EINVAL, "read key", file, "the file holds no key; make one with: wherry key FILE");
  };
  if (text.size() != kFileBytes - 1 || !text.starts_with(kPrefix)) refuse();
  Key key{};
  for (std::size_t i = 0; i < key.size(); ++i) {
    const std::size_t high = kDigits.find(text[kPrefix.size() + 2 * i]);
    const std::size_t low = kDigits.find(text[kPrefix.size() + 2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) refuse();
    key[i] = static_cast<std::byte>(high << 4 | low);
  }
  return key;
}

}  // namespace wherry
