// SPDX-License-Identifier: Apache-2.0
// The state of a TScifFile: its connection to the server, and the file as it is so far.
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
  /// Bytes of a file before it takes memory of the server's: header, name and directory, which an empty file has.
  static constexpr std::size_t kSmall = 16384;
  /// Into so many parts the largest file would be divided.
  static constexpr std::size_t kParts = 4;

  explicit Impl(const wherry::root::FileUrl& url)
      : address(url.address),
        name(url.name),
        client(url.address, {.connect_timeout = {}, .reconnect = url.reconnect}) {}

  /// A forked child has what its parent writes into, and no business with it.
  [[nodiscard]] bool is_inherited() const { return generation != wherry::fork_generation(); }
  [[nodiscard]] bool is_unwound() const { return std::uncaught_exceptions() > exceptions; }

  /// Where the file is, at least `bytes` of it.
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

  /// A file that has become large is handed over in parts, if it can be.
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
  std::size_t size = 0;                             ///< bytes the file has
  std::size_t offset = 0;                           ///< where the next read or write is
  std::size_t ask_at = client.max_file() / kParts;  ///< bytes
  Long64_t posted = 0;
  bool writing = false;  ///< all of it, and not only a tree that saves itself
  bool told_of_parts = false;
  bool watched = false;  ///< exit() has been told, since it was opened
  bool deleted = false;  ///< by the program, without having been closed
};
