// SPDX-License-Identifier: Apache-2.0
#include "arch/copy.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>

#include "arch/barrier.hpp"
#include "arch/cache_line.hpp"
#include "arch/shared_copy.hpp"
#include "base/config.hpp"
#include "base/found_once.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace wherry::arch {
namespace {

#if defined(__x86_64__)

// Bytes that a kernel moves in one step: whole cache lines, so that each line leaves in one write to memory.
constexpr std::size_t kStep = 4 * kCacheLine;

// Copies with a kernel that moves whole steps to an aligned destination. The ends go through the caches.
template <void (*MoveSteps)(std::byte*, const std::byte*, std::size_t)>
void copy_around(void* destination, const void* source, std::size_t bytes) {
  auto* to = static_cast<std::byte*>(destination);
  const auto* from = static_cast<const std::byte*>(source);
  const std::size_t past_line = reinterpret_cast<std::uintptr_t>(to) % kCacheLine;
  const std::size_t head = std::min(past_line == 0 ? 0 : kCacheLine - past_line, bytes);
  const std::size_t body = (bytes - head) / kStep * kStep;
  copy_cached(to, from, head);
  MoveSteps(to + head, from + head, body);
  copy_cached(to + head + body, from + head + body, bytes - head - body);
  drain_streaming_stores();
}

void move_sse2(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (const std::byte* const end = from + bytes; from != end; from += kStep, to += kStep) {
    for (std::size_t at = 0; at < kStep; at += sizeof(__m128i)) {
      const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), part);
    }
  }
}

[[gnu::target("avx2")]] void move_avx2(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (const std::byte* const end = from + bytes; from != end; from += kStep, to += kStep) {
    for (std::size_t at = 0; at < kStep; at += sizeof(__m256i)) {
      const __m256i part = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at));
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at), part);
    }
  }
}

// No AVX-512: in measurements whole-line stores were never faster than pairs of half lines, and up to a third slower
// from 8 MiB.
constexpr std::array kKernels{
    StreamingKernel{"avx2", copy_around<move_avx2>},
    StreamingKernel{"sse2", copy_around<move_sse2>},
};

std::size_t first_usable_kernel() { return __builtin_cpu_supports("avx2") != 0 ? 0 : 1; }

#else

// AArch64's STNP is a hint that most cores ignore. Their caches stop allocating lines during a long run of stores
// anyway, so the plain copy is the streaming one.
constexpr std::array kKernels{StreamingKernel{"plain", copy_cached}};

std::size_t first_usable_kernel() { return 0; }

#endif

std::size_t configured_threshold() noexcept {
  try {
    return static_cast<std::size_t>(config::number(config::Key::nontemporal));
  } catch (const std::exception&) {
    return static_cast<std::size_t>(
        config::parse_bytes("default", config::option(config::Key::nontemporal).default_value));
  }
}

}  // namespace

std::span<const StreamingKernel> streaming_kernels() {
  static constinit FoundOnce<std::size_t> first;
  return std::span<const StreamingKernel>(kKernels).subspan(first.get(first_usable_kernel));
}

void copy_streaming(void* destination, const void* source, std::size_t bytes) {
  streaming_kernels().front().copy(destination, source, bytes);
}

void copy_into(void* destination, const void* source, std::size_t bytes) {
  if (bytes >= streaming_threshold()) return copy_streaming(destination, source, bytes);
  copy_into_shared(destination, source, bytes);
}

void copy_out_of(void* destination, const void* source, std::size_t bytes) {
  if (bytes >= streaming_threshold()) return copy_streaming(destination, source, bytes);
  copy_out_of_shared(destination, source, bytes);
}

std::size_t streaming_threshold() noexcept {
  static constinit FoundOnce<std::size_t> threshold;
  return threshold.get(configured_threshold);
}

}  // namespace wherry::arch
