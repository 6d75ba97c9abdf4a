// SPDX-License-Identifier: Apache-2.0
#include "run/elf_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <utility>

#include "base/unique_fd.hpp"

namespace wherry::tools {

std::optional<ElfFile> ElfFile::open(const std::filesystem::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status{};
  if (!fd.valid() || fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size < sizeof(Elf64_Ehdr)) return std::nullopt;
  void* const place = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (place == MAP_FAILED) return std::nullopt;
  ElfFile file({static_cast<const std::byte*>(place), size});
  const auto& header = *static_cast<const Elf64_Ehdr*>(place);
  if (std::memcmp(&header.e_ident[0], ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
    return std::nullopt;
  return file;
}

ElfFile::ElfFile(ElfFile&& other) noexcept : file_(std::exchange(other.file_, {})) {}

ElfFile::~ElfFile() {
  if (!file_.empty()) munmap(const_cast<std::byte*>(file_.data()), file_.size());
}

std::span<const Elf64_Phdr> ElfFile::segments() const {
  const auto& header = *reinterpret_cast<const Elf64_Ehdr*>(file_.data());
  const std::size_t offset = header.e_phoff;
  const std::size_t count = header.e_phnum;
  if (offset % alignof(Elf64_Phdr) != 0 || header.e_phentsize != sizeof(Elf64_Phdr)) return {};
  if (offset > file_.size() || count > (file_.size() - offset) / sizeof(Elf64_Phdr)) return {};
  return {reinterpret_cast<const Elf64_Phdr*>(file_.data() + offset), count};
}

std::span<const std::byte> ElfFile::bytes_of(const Elf64_Phdr& segment) const {
  if (segment.p_offset > file_.size() || segment.p_filesz > file_.size() - segment.p_offset) return {};
  return file_.subspan(segment.p_offset, segment.p_filesz);
}

std::string ElfFile::string_at(std::size_t offset) const {
  if (offset >= file_.size()) return "";
  const auto* text = reinterpret_cast<const char*>(file_.data() + offset);
  return {text, strnlen(text, file_.size() - offset)};
}

/// The file offset of the byte that is loaded at `address`; the file's size if there is none.
std::size_t ElfFile::offset_of(Elf64_Addr address) const {
  for (const Elf64_Phdr& segment : segments()) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz)
      continue;
    return segment.p_offset + (address - segment.p_vaddr);
  }
  return file_.size();
}

std::string ElfFile::loader() const {
  for (const Elf64_Phdr& segment : segments()) {
    if (segment.p_type == PT_INTERP) return string_at(segment.p_offset);
  }
  return "";
}

std::vector<std::string> ElfFile::needed() const {
  std::vector<Elf64_Dyn> entries;
  for (const Elf64_Phdr& segment : segments()) {
    if (segment.p_type != PT_DYNAMIC) continue;
    const auto bytes = bytes_of(segment);
    entries.resize(bytes.size() / sizeof(Elf64_Dyn));
    // An empty span may have a null address, which memcpy does not permit.
    if (!entries.empty()) std::memcpy(entries.data(), bytes.data(), entries.size() * sizeof(Elf64_Dyn));
  }
  std::size_t strings = file_.size();
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_STRTAB) strings = offset_of(entry.d_un.d_ptr);
  }
  std::vector<std::string> names;
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NEEDED && entry.d_un.d_val < file_.size())
      names.push_back(string_at(strings + entry.d_un.d_val));
  }
  return names;
}

bool ElfFile::contains(std::string_view bytes) const {
  for (const Elf64_Phdr& segment : segments()) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const auto where = bytes_of(segment);
    if (!where.empty() && memmem(where.data(), where.size(), bytes.data(), bytes.size()) != nullptr) return true;
  }
  return false;
}

}  // namespace wherry::tools
