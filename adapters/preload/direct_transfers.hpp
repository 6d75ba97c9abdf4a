// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes of a mount's files past the mount, where the result is the same as the kernel's. If a function
// returns nothing, the kernel must make the whole call.
//
// `read` and `write` use the kernel's offset. They go past the mount only on descriptors of mode `own`, whose offset no
// other descriptor and no other process shares. The mode is `moving` during the transfer, so that no other call of this
// process uses the offset.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <type_traits>

#include "descriptors.hpp"
#include "direct_files.hpp"

namespace wherry::preload {

/// A reference to a function that makes the kernel's call, or does the same in place.
class KernelsCall {
 public:
  template <typename Call>
    requires(!std::is_same_v<Call, KernelsCall>)
  explicit KernelsCall(Call& call)
      : object_(&call), call_([](void* object) { return (*static_cast<Call*>(object))(); }) {}
  ssize_t operator()() const { return call_(object_); }

 private:
  void* object_;
  ssize_t (*call_)(void*);
};

/// How to read pages that the kernel has in place.
struct InPlace {
  KernelsCall copy;        ///< negative: not possible now
  const bool& is_typical;  ///< set by `copy`. False: it has touched new memory
};

/// Cancellation points, as the kernel's calls are, before anything is moved.
std::optional<ssize_t> pread_direct(int fd, void* buffer, std::size_t bytes, off_t offset,
                                    const InPlace* in_place = nullptr);
/// @param by_mount  makes the write by the kernel or a ring, and counts it for the report
std::optional<ssize_t> pwrite_direct(int fd, const void* buffer, std::size_t bytes, off_t offset, KernelsCall by_mount);
/// `read` and `write` of a descriptor whose state is `before`. If the state has changed, they return nothing.
/// @param cost  is added to what the descriptor's reads have cost, if the read goes past the mount
std::optional<ssize_t> read_direct(int fd, Entry& entry, State before, std::uint64_t cost, void* buffer,
                                   std::size_t bytes, KernelsCall kernels);
std::optional<ssize_t> write_direct(int fd, Entry& entry, State before, const void* buffer, std::size_t bytes,
                                    KernelsCall kernels);
/// For calls that never go past a mount.
inline std::optional<ssize_t> not_past_mount(Entry& /*entry*/, State /*state*/) { return std::nullopt; }

/// pread past the mount or by the kernel, counted for the report.
ssize_t pread_not_in_place(int fd, void* buffer, std::size_t bytes, off_t offset);

/// Whether a transfer of this many bytes may be one of these.
bool may_be_direct(int fd, std::size_t bytes) noexcept;
/// The same for a read. Counts it if it is left to the mount.
bool may_read_direct(int fd, std::size_t bytes) noexcept;
/// Whether later transfers may be, although this one is the kernel's. Keeps errno.
bool may_become_direct(int fd) noexcept;

}  // namespace wherry::preload
