// SPDX-License-Identifier: Apache-2.0
// One contiguous range of the server's memory, for the files of one worker at a time.
//
// A large lease reserves addresses for the largest file, even if that begins at the end of the first unit. Its front is
// exposed to workers step by step, so that the rest takes no memory. The part of the front that has pages (`backed`)
// counts against the budget. A free lease can be trimmed: its pages return to the system, and the next access gets
// zeroed ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <wherry/window.hpp>

namespace wherry::root {

class Lease {
 public:
  /// Reserves addresses. Throws Error(ENOMEM).
  Lease(std::uint64_t number, std::size_t addresses);
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  /// Removes the pages, for all mappings: a late write by a former holder reaches no other file.
  ~Lease();

  [[nodiscard]] std::uint64_t number() const { return number_; }  ///< unique; never reused by another lease
  [[nodiscard]] std::span<std::byte> memory() const { return memory_; }
  [[nodiscard]] std::size_t backed() const { return backed_; }
  void back(std::size_t bytes) { backed_ = bytes; }
  void trim();

  /// Registers the bytes between `from` and `to` with a worker, at `offset` + `from`. Throws Error.
  void expose(Windows windows, std::uint64_t offset, std::size_t from, std::size_t to);

 private:
  std::uint64_t number_;
  std::span<std::byte> memory_;
  std::size_t exposed_ = 0;  ///< bytes of the largest front that was exposed to any worker
  std::size_t backed_ = 0;
};

}  // namespace wherry::root
