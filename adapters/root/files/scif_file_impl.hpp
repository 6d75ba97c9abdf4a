// SPDX-License-Identifier: Apache-2.0
// The state of a TScifFile: its connection to the server, and the file being written.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <string>

#include "TScifFile.h"
#include "adapters/root/handover/client/client.hpp"
#include "base/fork_generation.hpp"
#include "class_record.hpp"
#include "outputs.hpp"
#include "parts.hpp"
#include "url.hpp"
#include "whole_objects.hpp"

class TScifFile::Impl {
 public:
  /// A file of at most this many bytes uses no memory of the server. Enough for an empty file: header, name, directory.
  static constexpr std::size_t kSmall = 16384;
  /// A file is handed over in parts when it exceeds 1/kParts of the largest file.
  static constexpr std::size_t kParts = 4;

  explicit Impl(const wherry::root::FileUrl& url)
      : address(url.address),
        name(url.name),
        client(url.address, {.connect_timeout = {}, .reconnect = url.reconnect}) {}

  /// Whether this is a forked child's copy. It must not touch the connection and the memory, which the parent uses.
  [[nodiscard]] bool is_inherited() const { return generation != wherry::fork_generation(); }
  [[nodiscard]] bool is_unwound() const { return std::uncaught_exceptions() > exceptions; }

  /// Returns the memory of the file, at least `bytes`: small, or the server's, into which it copies small.
  std::byte* memory(std::size_t bytes) {
    if (client.file().empty()) {
      if (bytes <= small.size()) return small.data();
      const auto lease = client.grow(bytes);
      std::memcpy(lease.data(), small.data(), std::min(size, small.size()));
      return lease.data();
    }
    return client.grow(bytes).data();
  }

  [[nodiscard]] std::span<const char> record(Long64_t seek, Int_t bytes) const {
    const auto lease = client.file();
    const std::byte* const file = lease.empty() ? small.data() : lease.data();
    if (seek <= 0 || bytes <= 0 || static_cast<std::size_t>(seek + bytes) > size) return {};
    return {reinterpret_cast<const char*>(file) + seek, static_cast<std::size_t>(bytes)};
  }

  void hand_over(std::size_t bytes) {
    memory(std::max(bytes, kSmall + 1));
    client.post(name, bytes);
    ++posted;
    size = 0;
    offset = 0;
    ask_at = client.max_file() / kParts;
  }

  /// Asks the trees of a large file to save themselves, so that it is handed over in parts. If that is not possible,
  /// tries again after the file has grown by 1/(4 kParts) of the largest file.
  void ask_for_parts(const TDirectory& file) {
    if (size <= ask_at || parts.asked() || writing) return;
    parts.ask(file, size);
    ask_at = size + client.max_file() / (4 * kParts);
  }

  void finish() {
    client.finish();
    if (posted > 0) wherry::root::note_output(address, name, client.output_of(name));
  }

  const std::string address;
  const std::string name;
  const std::uint64_t generation = wherry::fork_generation();
  const int exceptions = std::uncaught_exceptions();
  wherry::root::WindowClient client;
  wherry::root::ClassRecord classes;
  wherry::root::WholeObjects whole;
  wherry::root::Parts parts;
  std::array<std::byte, kSmall> small{};
  std::size_t size = 0;                             ///< bytes of the file
  std::size_t offset = 0;                           ///< of the next read or write
  std::size_t ask_at = client.max_file() / kParts;  ///< file size above which the trees are asked to save themselves
  Long64_t posted = 0;
  bool writing = false;  ///< the whole file is being written, not only a tree that saves itself
  bool told_of_parts = false;
  bool watched = false;  ///< watch_for_end() was called after the file was opened
  bool deleted = false;  ///< the destructor is running, and Close() was not called before
};
