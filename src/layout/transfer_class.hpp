// SPDX-License-Identifier: Apache-2.0
// Cost of transfers of a mount's files on the path `auto`, by class: through the mount, and past it. Part of the
// statistics page.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace wherry::layout {

using Counter = std::atomic<std::uint64_t>;
static_assert(Counter::is_always_lock_free && sizeof(Counter) == 8);

/// The transfers of one class that went one way.
struct TransferWay {
  Counter calls;
  Counter bytes;
  Counter estimate_ns;  ///< estimated time for the smallest transfer of the class; 0: not measured
  Counter explored;     ///< part of `calls`: calls that went this way to measure it, although it is the slower one
};
static_assert(sizeof(TransferWay) == 32 && offsetof(TransferWay, bytes) == 8);
static_assert(offsetof(TransferWay, estimate_ns) == 16 && offsetof(TransferWay, explored) == 24);

struct alignas(64) TransferClass {
  TransferWay host;    // W: owner, any thread; directly to the host's server
  TransferWay kernel;  // W: owner, any thread; by the kernel, through the mount
};
static_assert(std::is_standard_layout_v<TransferClass>);
static_assert(sizeof(TransferClass) == 64 && offsetof(TransferClass, kernel) == 32);

enum class TransferKind : std::uint8_t {
  hit,   ///< a read whose pages are all in the page cache of the program's kernel
  miss,  ///< a read with at least one page that is not
  write,
};

/// The properties that decide the class of a transfer.
struct TransferTraits {
  TransferKind kind = TransferKind::miss;
  std::uint64_t bytes = 0;  ///< of a class: its smallest size; all but the largest class end below twice that
  bool in_order = false;    ///< it begins where the file's last transfer ended: the kernel may have read ahead
  bool crowded = false;     ///< threads wait for a core
};
static_assert(sizeof(TransferTraits) == 24, "no part of the page");

inline constexpr std::size_t kTransferSizes = 9;
inline constexpr std::size_t kTransferClasses = 3 * 2 * 2 * kTransferSizes;
inline constexpr std::uint64_t kLeastTransferBytes = std::uint64_t{64} << 10;

/// Returns the time by which a transfer through the mount is compared, if it took `nanoseconds`. A write returns before
/// the mount has sent the data. On crowded cores the sending takes time from the program.
constexpr std::uint64_t counted_by_kernel(const TransferTraits& transfer, std::uint64_t nanoseconds) {
  return transfer.kind == TransferKind::write && transfer.crowded ? 2 * nanoseconds : nanoseconds;
}

/// Whether a class's transfers go to the host as a rule: by the estimates, or by the calls as long as one of them is
/// missing. `Way` has the fields of TransferWay.
template <class Way>
bool go_to_host(const TransferTraits& transfer, const Way& host, const Way& kernel) {
  if (host.estimate_ns != 0 && kernel.estimate_ns != 0)
    return host.estimate_ns < counted_by_kernel(transfer, kernel.estimate_ns);
  return host.calls + kernel.explored > kernel.calls + host.explored;
}

/// Returns the index of a class among the kTransferClasses. `size` is below kTransferSizes.
constexpr std::size_t transfer_class(TransferKind kind, bool in_order, bool crowded, std::size_t size) {
  return (static_cast<std::size_t>(kind) * 4 + (in_order ? 2 : 0) + (crowded ? 1 : 0)) * kTransferSizes + size;
}

/// Returns the properties of the class at that index.
constexpr TransferTraits transfer_traits(std::size_t place) {
  const std::size_t rest = place / kTransferSizes;
  return {.kind = static_cast<TransferKind>(rest / 4),
          .bytes = kLeastTransferBytes << place % kTransferSizes,
          .in_order = rest / 2 % 2 != 0,
          .crowded = rest % 2 != 0};
}

}  // namespace wherry::layout
