// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include <wherry/file_path.hpp>

#include "file/mapped/mapped_file.hpp"

namespace wherry::file {

/// Reads of one open file that are copies from the kernel's page cache (file/mapped/). From any thread. A forked child
/// maps the file anew.
///
/// Nothing tells this library when the program changes a signal's action, or a thread's mask, as hooks tell the
/// preloaded one: the kernel is asked for both when they are as old as a size may be (mapped::kSizeCounts).
class InPlaceReader {
 public:
  /// `fd` must stay open as long as the object lives, and be the only one that is told of.
  explicit InPlaceReader(int fd) : fd_(fd) {}
  InPlaceReader(const InPlaceReader&) = delete;
  InPlaceReader& operator=(const InPlaceReader&) = delete;
  /// Unmaps the file, and what was shown of it.
  ~InPlaceReader();

  /// Copies all of these `bytes`, which the parts have room for. False: the kernel must read; the parts may be written.
  /// `path`: automatic or cache.
  bool read(std::span<const iovec> to, std::uint64_t bytes, std::uint64_t offset, files::Path path) noexcept;

  /// The bytes of the file there, as File::view.
  std::span<const std::byte> view(std::uint64_t offset, std::size_t length);

 private:
  enum class State : std::uint8_t { counting, mapped, never };
  struct Reading;
  /// The file from its begin on; the longest one first.
  struct View {
    std::span<const std::byte> bytes;
    const View* before;
  };

  static void revoke(std::uintptr_t self, std::uint32_t region) noexcept;
  [[nodiscard]] std::uintptr_t owner() const { return reinterpret_cast<std::uintptr_t>(this); }
  bool is_ready(std::uint64_t bytes, files::Path path) noexcept;
  void set_up() noexcept;
  bool refresh() noexcept;
  void begin_generation() noexcept;
  void drop() noexcept;
  void give_up() noexcept;
  void leave_parents_mapping() noexcept;
  const View* add_view(const View* before, std::size_t bytes);

  int fd_;
  std::atomic<State> state_{State::counting};
  std::atomic<std::uint32_t> spent_{0};       // by the kernel's reads (mapped::cost_of_read)
  std::atomic<std::uint32_t> generation_{0};  // grows before the file is unmapped
  std::atomic<std::uint64_t> progress_{0};    // mapped::Progress
  std::atomic<std::uint64_t> process_{0};     // that mapped it, as fork_generation
  mapped::MappedFile file_;
  std::atomic<std::uint64_t> setup_{0};      // the process whose thread maps, unmaps, or asks for the size; 0: none
  std::atomic<const View*> views_{nullptr};  // mapped until the file is closed
};

}  // namespace wherry::file
