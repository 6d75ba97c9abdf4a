// SPDX-License-Identifier: Apache-2.0
//
// A message of a megabyte often lies in memory fresh from the kernel, and each page of it costs a fault when it is
// first read or written: a microsecond on a virtual machine, four times what copying the page takes. One call maps
// hundreds of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zmq {

/// Maps the pages of one buffer that is read or written from front to back, a chunk ahead of the copy, so that the
/// other side has work meanwhile.
class wherry_prefault_t {
 public:
  enum class access_t { reads, writes };
  explicit wherry_prefault_t(access_t access) : access_(access) {}

  /// The next `bytes` bytes at `place` are about to be used; the buffer goes on for `rest` bytes in all. No pages are
  /// made that are there already, and none where the system cannot: then they come by faults, as ever.
  void before(const void* place, std::size_t bytes, std::size_t rest);

 private:
  access_t access_;
  std::uintptr_t begin_ = 0;  ///< of what is known to be there
  std::uintptr_t end_ = 0;
};

/// What a medium message is: of these a heap holds many side by side.
constexpr std::size_t wherry_medium = std::size_t{16} << 10;

/// The same for a row of buffers too small for a look at each, which are read: a program that runs ahead allocates them
/// one behind the other.
class wherry_heap_prefault_t {
 public:
  /// The `bytes` bytes at `place` are about to be read. If they are missing, so is most of what lies behind them, up to
  /// a megabyte: it is mapped with them. Where nothing is missing, only every sixteenth buffer is looked at.
  void before(const void* place, std::size_t bytes);

 private:
  std::uintptr_t begin_ = 0;  ///< of what was mapped last
  std::uintptr_t end_ = 0;
  unsigned interval_ = 0;  ///< buffers that are let pass between two looks
  unsigned passes_ = 0;    ///< of these, how many are left
};

}  // namespace zmq
