// SPDX-License-Identifier: Apache-2.0
//
// Reads the properties of an executable or a shared library from its file, without executing it.
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

/// A mapped 64-bit ELF file. References beyond its end count as absent.
class ElfFile {
 public:
  /// Empty if the file cannot be read, or is not a 64-bit ELF file, such as a script.
  static std::optional<ElfFile> open(const std::filesystem::path& path);
  ElfFile(ElfFile&& other) noexcept;
  ~ElfFile();

  /// The path of its dynamic loader. Empty: none, because it is linked statically, or is a library.
  [[nodiscard]] std::string loader() const;
  /// The sonames of the libraries that it was linked with, without the dependencies of these.
  [[nodiscard]] std::vector<std::string> needed() const;
  /// True if its constants, code or symbol names contain these bytes.
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
