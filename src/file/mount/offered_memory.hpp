// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <utility>

#include "base/unique_fd.hpp"

namespace wherry::file::mount {

/// Memory that a program shares with this mount: a memfd that cannot shrink, mapped here. The program can change its
/// content at any time.
class OfferedMemory {
 public:
  /// Maps the memory of a descriptor. If it has another size, can shrink, or cannot be mapped, the object is empty.
  OfferedMemory(UniqueFd memory, std::size_t bytes);
  OfferedMemory(OfferedMemory&& other) noexcept
      : memory_(std::move(other.memory_)), bytes_(other.bytes_), begin_(std::exchange(other.begin_, nullptr)) {}
  OfferedMemory(const OfferedMemory&) = delete;
  OfferedMemory& operator=(const OfferedMemory&) = delete;
  OfferedMemory& operator=(OfferedMemory&&) = delete;
  ~OfferedMemory();

  /// Null: empty.
  [[nodiscard]] void* begin() const { return begin_; }
  [[nodiscard]] int descriptor() const { return memory_.get(); }
  /// The memory stays mapped.
  void close_descriptor() { memory_.reset(); }

 private:
  UniqueFd memory_;
  std::size_t bytes_;
  void* begin_ = nullptr;
};

/// A duplicate of a program's descriptor of memory. Invalid: it cannot be taken, or is not of memory.
/// @param process  must exist: a thread of it waits for the answer
UniqueFd take_memory(pid_t process, int descriptor);

/// The process of a thread; 0: unknown.
pid_t process_of(pid_t thread);

}  // namespace wherry::file::mount
