// SPDX-License-Identifier: Apache-2.0
#include "base/preload_support.hpp"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace wherry {
namespace {

constexpr int kMostInterpreters = 5;

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
constexpr Elf64_Half kMachine = EM_NONE;
#endif

/// A file open for reading. Its beginning, which contains the headers of most programs, is read at once.
class File {
 public:
  File(int at, const char* path, int flags) : fd_(::openat(at, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags)) {
    if (fd_ >= 0) head_size_ = pread(head_.data(), head_.size(), 0);
  }
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[nodiscard]] int get() const { return fd_; }
  /// Returns how many bytes were read.
  std::size_t read(void* to, std::size_t bytes, std::uint64_t offset) const {
    if (offset > head_size_ || bytes > head_size_ - offset) return pread(to, bytes, offset);
    std::memcpy(to, head_.data() + offset, bytes);
    return bytes;
  }

 private:
  std::size_t pread(void* to, std::size_t bytes, std::uint64_t offset) const {
    const ssize_t got = ::pread(fd_, to, bytes, static_cast<off_t>(offset));
    return got < 0 ? 0 : static_cast<std::size_t>(got);
  }

  int fd_;
  std::array<char, 1024> head_{};
  std::size_t head_size_ = 0;
};

/// Whether the file is setuid or setgid to others, or has capabilities: the loader then ignores LD_PRELOAD.
bool has_other_rights(int fd) {
  struct stat status{};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return true;
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid()) return true;
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != getegid()) return true;
  return geteuid() != 0 && fgetxattr(fd, "security.capability", nullptr, 0) > 0;
}

bool is_of_go(const File& file, const Elf64_Phdr& segment) {
  std::array<char, 1024> notes{};
  return has_note_of_go(
      {notes.data(), file.read(notes.data(), std::min<std::size_t>(segment.p_filesz, notes.size()), segment.p_offset)});
}

bool is_loader_of_glibc(const File& file, const Elf64_Phdr& segment) {
  std::array<char, 256> name{};
  const std::size_t size = std::min<std::size_t>(segment.p_filesz, name.size() - 1);
  if (file.read(name.data(), size, segment.p_offset) != size) return false;
  std::string_view base(name.data());
  base.remove_prefix(base.rfind('/') + 1);  // npos + 1 is 0
  return base.starts_with("ld-linux") || base.starts_with("ld.so") || base.starts_with("ld-2.");
}

PreloadSupport support_of_elf(const File& file) {
  Elf64_Ehdr header{};
  if (file.read(&header, sizeof(header), 0) != sizeof(header)) return PreloadSupport::ignored;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine) return PreloadSupport::ignored;
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return PreloadSupport::ignored;
  PreloadSupport support = PreloadSupport::ignored;
  for (unsigned i = 0; i < std::min<unsigned>(header.e_phnum, 64); i++) {
    Elf64_Phdr segment{};
    if (file.read(&segment, sizeof(segment), header.e_phoff + i * sizeof(segment)) != sizeof(segment)) {
      return PreloadSupport::ignored;
    }
    if (segment.p_type == PT_NOTE && is_of_go(file, segment)) return PreloadSupport::ignored;
    if (segment.p_type == PT_INTERP)
      support = is_loader_of_glibc(file, segment) ? PreloadSupport::supported : PreloadSupport::incompatible;
  }
  return support;
}

/// Cuts the interpreter out of the first line of a script; null if there is none.
const char* interpreter(char* line) {
  char* begin = line + 2;
  begin += std::strspn(begin, " \t");
  begin[std::strcspn(begin, " \t\n")] = '\0';
  return *begin == '\0' ? nullptr : begin;
}

PreloadSupport support_of_file(int at, const char* path, int flags) {
  std::array<char, 257> line{};
  std::array<char, 257> next{};
  for (int depth = 0; depth < kMostInterpreters; depth++) {
    const File file(at, path, flags);
    if (file.get() < 0 || has_other_rights(file.get())) return PreloadSupport::ignored;
    next.fill('\0');
    const std::size_t size = file.read(next.data(), next.size() - 1, 0);
    if (size >= SELFMAG && std::memcmp(next.data(), ELFMAG, SELFMAG) == 0) return support_of_elf(file);
    if (size < 2 || next[0] != '#' || next[1] != '!') return PreloadSupport::ignored;
    line = next;
    path = interpreter(line.data());
    if (path == nullptr) return PreloadSupport::ignored;
    at = AT_FDCWD;
    flags = 0;
  }
  return PreloadSupport::ignored;
}

}  // namespace

bool has_note_of_go(std::string_view notes) noexcept {
  constexpr std::string_view kName("Go\0\0", 4);
  const auto padded = [](std::uint64_t bytes) { return (bytes + 3) / 4 * 4; };
  Elf64_Nhdr head{};
  while (notes.size() >= sizeof(head) + kName.size()) {
    std::memcpy(&head, notes.data(), sizeof(head));
    notes.remove_prefix(sizeof(head));
    if (head.n_namesz == kName.size() && notes.starts_with(kName)) return true;
    const std::uint64_t length = padded(head.n_namesz) + padded(head.n_descsz);
    if (length > notes.size()) break;
    notes.remove_prefix(length);
  }
  return false;
}

PreloadSupport preload_support_of(int at, const char* path, int flags) noexcept {
  const int error = errno;
  std::array<char, 32> of_descriptor{"/proc/self/fd/"};
  if (path == nullptr || (*path == '\0' && (flags & AT_EMPTY_PATH) != 0)) {
    *std::to_chars(of_descriptor.data() + std::strlen(of_descriptor.data()), of_descriptor.end() - 1, at).ptr = '\0';
    path = of_descriptor.data();
    flags = 0;
  }
  const PreloadSupport support = support_of_file(at, path, (flags & AT_SYMLINK_NOFOLLOW) != 0 ? O_NOFOLLOW : 0);
  errno = error;
  return support;
}

const char* find_in_path(const char* name, char* room) noexcept {
  if (name == nullptr || *name == '\0' || std::strchr(name, '/') != nullptr) return name;
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/bin:/usr/bin" : path;
  const std::string_view file(name);
  const int error = errno;
  const char* found = nullptr;
  while (found == nullptr) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    if (colon + file.size() + 2 <= PATH_MAX) {
      char* end = std::copy_n(rest.begin(), colon, room);
      if (colon != 0) *end++ = '/';
      end = std::copy(file.begin(), file.end(), end);
      *end = '\0';
      struct stat status{};
      if (stat(room, &status) == 0 && S_ISREG(status.st_mode) && access(room, X_OK) == 0) found = room;
    }
    if (colon == rest.size()) break;
    rest.remove_prefix(colon + 1);
  }
  errno = error;
  return found;
}

}  // namespace wherry
