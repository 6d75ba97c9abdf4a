// SPDX-License-Identifier: Apache-2.0
//
// Prefaults large messages. A message of a megabyte often lies in memory fresh from the kernel, and each page costs a
// fault when it is first read or written. On a virtual machine a fault takes a microsecond, four times as long as
// copying the page. One call maps hundreds of pages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zmq {

/// Maps the pages of one buffer that is read or written from front to back. It maps a chunk ahead of the copy, so that
/// the other side has work meanwhile.
class wherry_prefault_t {
 public:
  enum class access_t { reads, writes };
  explicit wherry_prefault_t(access_t access) : access_(access) {}

  /// To be called before the next `bytes` bytes at `place` are used; the buffer has `rest` bytes in all. Maps only
  /// missing pages. If the system cannot, they come by faults.
  void before(const void* place, std::size_t bytes, std::size_t rest);

 private:
  access_t access_;
  std::uintptr_t begin_ = 0;  ///< the range that is known to be mapped
  std::uintptr_t end_ = 0;
};

/// Size of a medium message: a heap holds many of these side by side.
constexpr std::size_t wherry_medium = std::size_t{16} << 10;

/// The same for a row of buffers that are read and are too small to look at each: a program that runs ahead allocates
/// them one behind the other.
class wherry_heap_prefault_t {
 public:
  /// To be called before the `bytes` bytes at `place` are read. If they are missing, so is most of what lies behind
  /// them: up to a megabyte is mapped with them. If nothing is missing, only every sixteenth buffer is checked.
  void before(const void* place, std::size_t bytes);

 private:
  std::uintptr_t begin_ = 0;  ///< the range that was mapped last
  std::uintptr_t end_ = 0;
  unsigned interval_ = 0;  ///< buffers that are skipped between two looks
  unsigned passes_ = 0;    ///< of these, how many are left
};

}  // namespace zmq
