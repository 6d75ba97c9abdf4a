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

/// Reads one open file by copies from the kernel's page cache (file/mapped/). Thread-safe. A forked child maps the file
/// anew.
///
/// Without the hooks of the preloaded library, this library does not see when the program changes a signal's action or
/// a thread's mask. It asks the kernel for both once they are older than mapped::kSizeCounts.
class InPlaceReader {
 public:
  /// `fd` must stay open as long as the object lives.
  explicit InPlaceReader(int fd) : fd_(fd) {}
  InPlaceReader(const InPlaceReader&) = delete;
  InPlaceReader& operator=(const InPlaceReader&) = delete;
  /// Unmaps the file and its views.
  ~InPlaceReader();

  /// Copies all `bytes`; the parts have room for them. False: the kernel must read; the parts may be partly written.
  /// `path`: automatic or cache.
  bool read(std::span<const iovec> to, std::uint64_t bytes, std::uint64_t offset, files::Path path) noexcept;

  /// As File::view.
  std::span<const std::byte> view(std::uint64_t offset, std::size_t length);

 private:
  enum class State : std::uint8_t { counting, mapped, never };
  struct Reading;
  /// A mapping of the file from its beginning; a list, longest first.
  struct View {
    std::span<const std::byte> bytes;
    const View* before;
  };

  static void revoke(std::uintptr_t self, std::uint32_t region) noexcept;
  [[nodiscard]] std::uintptr_t owner() const { return reinterpret_cast<std::uintptr_t>(this); }
  bool is_ready(std::uint64_t offset, std::uint64_t bytes, files::Path path) noexcept;
  void set_up() noexcept;
  bool refresh() noexcept;
  void begin_generation() noexcept;
  void drop() noexcept;
  void give_up() noexcept;
  void leave_parents_mapping() noexcept;
  const View* add_view(const View* before, std::size_t bytes);

  int fd_;
  std::atomic<State> state_{State::counting};
  std::atomic<std::uint32_t> spent_{0};       // cost of the kernel's reads (mapped::cost_of_read)
  std::atomic<std::uint32_t> generation_{0};  // incremented before the file is unmapped
  std::atomic<std::uint64_t> progress_{0};    // mapped::Progress
  std::atomic<std::uint64_t> process_{0};     // fork_generation of the process that mapped it
  mapped::MappedFile file_;
  std::atomic<std::uint64_t> setup_{0};      // the process whose thread holds the setup lock; 0: none
  std::atomic<const View*> views_{nullptr};  // unmapped when the file is closed
};

}  // namespace wherry::file
