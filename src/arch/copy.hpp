// SPDX-License-Identifier: Apache-2.0
// Copy kernels. Source and destination must not overlap. Any sizes and alignments. None of them publishes anything: the
// caller's release store does, after the copy.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

namespace wherry::arch {

/// A copy through the caches: right whenever the destination is read soon.
inline void copy_cached(void* destination, const void* source, std::size_t bytes) {
  // An empty span's null pointer may not be given to memcpy, not even with size 0.
  if (bytes != 0) std::memcpy(destination, source, bytes);
}

/// A copy by stores that bypass the caches where the CPU has such stores (else the same as copy_cached): it neither
/// reads the destination's lines from memory first nor throws out what the caches hold. Calls drain_streaming_stores()
/// before it returns, so a release store that follows publishes these bytes like any others.
void copy_streaming(void* destination, const void* source, std::size_t bytes);

/// Copies of any length into or out of memory that other cores use: copy_streaming for at least streaming_threshold()
/// bytes, else copy_into_shared or copy_out_of_shared.
void copy_into(void* destination, const void* source, std::size_t bytes);
void copy_out_of(void* destination, const void* source, std::size_t bytes);

/// From how many bytes on these two bypass the caches: WHERRY_NONTEMPORAL as it was at the first use, its default if it
/// is not valid (`wherry config` says so). The default, 32 MiB, is where streaming stopped losing in every case that
/// `bench_copy_kernels --samples 9` measures (2 cores, 2 MiB L2 each). The copy alone was faster with it from 2 MiB on
/// (from 16 KiB on between cold buffers, by 1.4), but a reader of the destination pays that back at once: written,
/// copied and read, 8 MiB went at 6.9 GB/s through the caches and at 5.1 around them, 32 MiB at 4.6 and 4.9. For the
/// same reason rings never do.
std::size_t streaming_threshold() noexcept;

/// One way to write copy_streaming.
struct StreamingKernel {
  const char* name;  ///< the instructions it needs: "avx2", "sse2", or "plain"
  void (*copy)(void* destination, const void* source, std::size_t bytes);
};

/// Those that this CPU can run, the one that copy_streaming uses first. For tests and measurements.
std::span<const StreamingKernel> streaming_kernels();

}  // namespace wherry::arch
