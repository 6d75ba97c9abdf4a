// SPDX-License-Identifier: Apache-2.0
//
// What an executable or a shared library says of itself, read from its file: nothing of it is run.
#pragma once

#include <elf.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::tools {

/// A 64-bit ELF file, mapped. What in it points beyond its end counts as absent.
class ElfFile {
 public:
  /// Empty if it cannot be read or is something else, a script for example.
  static std::optional<ElfFile> open(const std::filesystem::path& path);
  ElfFile(ElfFile&& other) noexcept;
  ~ElfFile();

  /// The dynamic loader that starts it. Empty: none, it is linked statically, or a library.
  [[nodiscard]] std::string loader() const;
  /// The sonames of the libraries it was linked with, not of those that these need.
  [[nodiscard]] std::vector<std::string> needed() const;
  /// True if its constants, code or names of symbols have these bytes in them.
  [[nodiscard]] bool contains(std::string_view bytes) const;

 private:
  explicit ElfFile(std::span<const std::byte> file) : file_(file) {}
  [[nodiscard]] std::span<const Elf64_Phdr> segments() const;
  [[nodiscard]] std::span<const std::byte> bytes_of(const Elf64_Phdr& segment) const;
  [[nodiscard]] std::string string_at(std::size_t offset) const;
  [[nodiscard]] std::size_t offset_of(Elf64_Addr address) const;

  std::span<const std::byte> file_;
};

}  // namespace wherry::tools
