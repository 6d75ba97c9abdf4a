// SPDX-License-Identifier: Apache-2.0
// Copy kernels, for any size and alignment. Source and destination must not overlap. None publishes anything: the
// caller's release store after the copy does.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

namespace wherry::arch {

/// Copies through the caches: right if the destination is read soon.
inline void copy_cached(void* destination, const void* source, std::size_t bytes) {
  // memcpy must not get an empty span's null pointer, even with size 0.
  if (bytes != 0) std::memcpy(destination, source, bytes);
}

/// Copies with stores that bypass the caches, if the CPU has such stores (else as copy_cached). It neither reads the
/// destination's lines first nor evicts other lines from the caches. Calls drain_streaming_stores() before it returns,
/// so a release store that follows publishes these bytes like any others.
void copy_streaming(void* destination, const void* source, std::size_t bytes);

/// Copy into or out of memory that other cores use: copy_streaming for at least streaming_threshold() bytes, else
/// copy_into_shared or copy_out_of_shared.
void copy_into(void* destination, const void* source, std::size_t bytes);
void copy_out_of(void* destination, const void* source, std::size_t bytes);

/// Size from which copy_into and copy_out_of bypass the caches: WHERRY_NONTEMPORAL at the first use, or its default if
/// that is invalid (`wherry config` reports it). The default, 32 MiB, is where streaming stopped losing in every case
/// that `bench_copy_kernels --samples 9` measures (2 cores, 2 MiB L2 each). The copy alone was faster from 2 MiB (from
/// 16 KiB between cold buffers, by 1.4), but a reader of the destination pays that back at once. Written, copied and
/// read, 8 MiB went at 6.9 GB/s through the caches and 5.1 around them, 32 MiB at 4.6 and 4.9. For the same reason
/// rings never bypass the caches.
std::size_t streaming_threshold() noexcept;

/// An implementation of copy_streaming.
struct StreamingKernel {
  const char* name;  ///< the instructions it needs: "avx2", "sse2", or "plain"
  void (*copy)(void* destination, const void* source, std::size_t bytes);
};

/// Returns the kernels that this CPU can run; copy_streaming uses the first. For tests and measurements.
std::span<const StreamingKernel> streaming_kernels();

}  // namespace wherry::arch
