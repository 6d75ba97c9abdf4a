// SPDX-License-Identifier: Apache-2.0
#include "arch/shared_copy.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <string>

#include "arch/cache_line.hpp"
#include "base/config.hpp"
#include "base/found_once.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace wherry::arch {
namespace {

using std::byte;

#if defined(__x86_64__)

// Bytes that a kernel moves in one step. The ends of a copy are moved unaligned and overlap its aligned steps, but
// never reach beyond the other end.
constexpr std::size_t kSharedStep = 2 * kCacheLine;
static_assert(kSmallestShared >= kSharedStep + kCacheLine);

[[gnu::target("avx2"), gnu::always_inline]] inline void move_line(byte* to, const byte* from) {
  const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + sizeof(__m256i)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), low);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + sizeof(__m256i)), high);
}

/// Keeps the compiler from turning the loop around this into a memcpy call, and from reordering it.
inline void keep_order() { asm volatile("" ::: "memory"); }

[[gnu::target("avx2")]] void copy_forward(void* destination, const void* source, std::size_t bytes) {
  if (bytes < kSmallestShared) return copy_cached(destination, source, bytes);
  auto* to = static_cast<byte*>(destination);
  const auto* from = static_cast<const byte*>(source);
  byte* const end = to + bytes;
  const byte* const from_end = from + bytes;
  move_line(to, from);
  const std::size_t to_line = kCacheLine - reinterpret_cast<std::uintptr_t>(to) % kCacheLine;
  for (to += to_line, from += to_line; end - to > static_cast<std::ptrdiff_t>(kSharedStep);
       to += kSharedStep, from += kSharedStep) {
    move_line(to, from);
    move_line(to + kCacheLine, from + kCacheLine);
    keep_order();
  }
  move_line(end - kSharedStep, from_end - kSharedStep);
  move_line(end - kCacheLine, from_end - kCacheLine);
}

[[gnu::target("avx2")]] void copy_backward(void* destination, const void* source, std::size_t bytes) {
  if (bytes < kSmallestShared) return copy_cached(destination, source, bytes);
  auto* const begin = static_cast<byte*>(destination);
  const auto* const from_begin = static_cast<const byte*>(source);
  byte* to = begin + bytes;
  const byte* from = from_begin + bytes;
  move_line(to - kCacheLine, from - kCacheLine);
  const std::size_t past_line = reinterpret_cast<std::uintptr_t>(to) % kCacheLine;
  for (to -= past_line, from -= past_line; to - begin > static_cast<std::ptrdiff_t>(kSharedStep);) {
    to -= kSharedStep;
    from -= kSharedStep;
    move_line(to + kCacheLine, from + kCacheLine);
    move_line(to, from);
    keep_order();
  }
  move_line(begin + kCacheLine, from_begin + kCacheLine);
  move_line(begin, from_begin);
}

/// Copies backward up to kMost bytes, forward beyond; below kLeast by the C library's memcpy.
template <std::size_t kLeast, std::size_t kMost>
void copy_either_way(void* destination, const void* source, std::size_t bytes) {
  (bytes < kLeast ? copy_cached : bytes <= kMost ? copy_backward : copy_forward)(destination, source, bytes);
}

// Size from which glibc 2.36 uses `rep movsb` on AMD.
constexpr std::size_t kRepMovsb = 2112;
constexpr std::size_t kKiB = 1024;

constexpr CopyFunction kBackward = copy_either_way<kSmallestShared, 64 * kKiB>;

constexpr std::array kCopies{
    SharedCopy{"memcpy", copy_cached, copy_cached},
    SharedCopy{"forward", copy_forward, copy_forward},
    SharedCopy{"backward", kBackward, kBackward},
    SharedCopy{"backward-out", copy_cached, copy_either_way<kRepMovsb, 32 * kKiB>},
};

std::size_t usable_copies() { return this_processor().avx2 ? kCopies.size() : 1; }

#else

constexpr std::array kCopies{SharedCopy{"memcpy", copy_cached, copy_cached}};

std::size_t usable_copies() { return kCopies.size(); }

#endif

const SharedCopy* find_copy(std::string_view name) {
  const auto copies = shared_copies();
  const auto found = std::ranges::find_if(copies, [&](const SharedCopy& copy) { return copy.name == name; });
  return found == copies.end() ? nullptr : &*found;
}

const SharedCopy& choose() noexcept {
  try {
    if (const SharedCopy* const wanted = find_copy(config::word(config::Key::copy))) return *wanted;
  } catch (const std::exception&) {  // invalid: `wherry config` reports it
  }
  const SharedCopy* const best = find_copy(best_shared_copy(this_processor()));
  return best != nullptr ? *best : kCopies.front();
}

void choose_and_copy_into(void* destination, const void* source, std::size_t bytes) {
  const CopyFunction copy = shared_copy().into;
  detail::copy_into_shared.store(copy, std::memory_order_relaxed);
  copy(destination, source, bytes);
}

void choose_and_copy_out(void* destination, const void* source, std::size_t bytes) {
  const CopyFunction copy = shared_copy().out;
  detail::copy_out_of_shared.store(copy, std::memory_order_relaxed);
  copy(destination, source, bytes);
}

}  // namespace

constinit std::atomic<CopyFunction> detail::copy_into_shared{choose_and_copy_into};
constinit std::atomic<CopyFunction> detail::copy_out_of_shared{choose_and_copy_out};

std::span<const SharedCopy> shared_copies() {
  static constinit FoundOnce<std::size_t> usable;
  return std::span<const SharedCopy>(kCopies).first(usable.get(usable_copies));
}

const SharedCopy& shared_copy() noexcept {
  static constinit FoundOnce<const SharedCopy*> chosen;
  return *chosen.get([] { return &choose(); });
}

Processor this_processor() noexcept {
  Processor processor;
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0) return processor;
  processor.amd = ebx == signature_AMD_ebx && ecx == signature_AMD_ecx && edx == signature_AMD_edx;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return processor;
  const unsigned base = (eax >> 8) & 0xf;
  processor.family = base == 0xf ? base + ((eax >> 20) & 0xff) : base;
  processor.avx2 = __builtin_cpu_supports("avx2") != 0;
#endif
  return processor;
}

// Measured with `bench_copy_kernels` and `wherry bench`, rings of 1 and 2 MiB, two cores of one L3:
// - AMD family 26 (EPYC, Zen 5): a writer's `rep movsb` is as fast as any other copy, and two to four times as fast if
//   the cores share no L3. A reader's loses. 4 KiB messages: 22 GB/s and 315 ns one way with memcpy both ways, 48 and
//   245 with a reader that copies backward. From 64 KiB a reader's memcpy is bimodal, 21 or 50 GB/s, and 13 at 16 MiB.
//   Forward, without `rep movsb`, it is 45 and 28.
// - AMD family 25 (EPYC): backward wins both ways: 4 KiB 386 -> 305 ns, 1 KiB 275 -> 185 ns.
// Other makes and older families were not measured: they use the C library's memcpy.
std::string_view best_shared_copy(const Processor& processor) noexcept {
  if (!processor.amd || !processor.avx2 || processor.family < 25) return "memcpy";
  return processor.family == 25 ? "backward" : "backward-out";
}

}  // namespace wherry::arch
