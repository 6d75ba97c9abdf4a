// SPDX-License-Identifier: Apache-2.0
// The arena: makes memory that the caller already has reachable for peers.
//
// One sparse memfd per process, the arena, holds all exposed memory. The caller's pages are copied there, and mapped
// from there at the same address. A peer that has the arena's descriptor can access all exposed memory at any time. A
// page in several windows is the same memory. A mapping of a peer outlives the owner.
//
//  - Each place in the arena is used only once, and places grow. So a late store to memory that is no longer exposed
//    makes a page that is never read, and cannot change another window.
//  - Memory stays in the arena when it is no longer exposed. To give the caller private pages back, they would have to
//    be copied while its other threads may be writing. Exposing it again is free. Such memory is idle. When
//    more than kMostIdle further bytes are idle, those that the caller has unmapped are returned to the system.
//  - A forked child has private copies of the memory that its parent exposed, and an arena of its own.
//  - Memory that cannot be moved (shared mappings of files, read-only pages) has a key with its address instead. Peers
//    reach it by a kernel copy, and cannot map it.
//
// May include: base.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "memory/arena_view.hpp"
#include "memory/range_counts.hpp"
#include "memory/region.hpp"

namespace wherry::memory {

class Arena {
 public:
  static constexpr std::size_t kMostIdle = std::size_t{32} << 20;

  /// The arena of this process, made at the first use. Throws Error: EMFILE, ENOMEM, EFBIG (ulimit -f).
  static Arena& instance();
  /// Registers the arena's handlers of fork. Other handlers that take a lock under which expose() is called must be
  /// registered after this.
  static void handle_forks();

  /// Exposes `memory`, which is whole pages, for as long as the result exists. Other threads may use it meanwhile.
  /// Their stores can be lost only if the kernel cannot make them wait (page_exchange.hpp). Throws Error: EINVAL;
  /// EFAULT if some of it is not mapped, cannot be read, or lies behind the end of its file; ENOMEM, EMFILE. From any
  /// thread.
  std::shared_ptr<LocalRegion> expose(std::span<std::byte> memory);

  /// Whether it exposes `bytes` under this key now. For fabrics with both sides in this process.
  bool exposes(const RemoteKey& key, std::size_t bytes);

  [[nodiscard]] const std::shared_ptr<ArenaView>& view() const { return view_; }

 private:
  class ArenaLocalRegion;
  struct Part;

  Arena();

  static std::atomic<Arena*>& current();  ///< null until the first use, and in a forked child
  static std::mutex& making();            ///< held while an arena is made
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();

  std::vector<Part> parts_of(std::span<std::byte> memory) const;
  void move(Part& part);
  std::uint64_t find_place(const Part& part);
  [[nodiscard]] bool is_ours(const MappedRange& range) const { return range.shared && range.file == view_->file(); }
  [[nodiscard]] std::optional<std::vector<MappedRange>> callers_mappings(const AddressMap& map) const;
  bool leave_this_stack(const std::vector<MappedRange>& mappings) const;
  void give_up_unmapped();
  void punch(std::uint64_t place, std::uint64_t bytes);

  std::shared_ptr<ArenaView> view_;
  const AddressMap map_;
  const std::uint64_t generation_;
  std::mutex mutex_;  // guards the members below, and the caller's mappings while they are examined and replaced
  RangeCounts used_;
  std::uint64_t cursor_ = 0;
  std::uint64_t last_bytes_ = 0;  ///< size of the last memory that lies together in the arena
  std::uint64_t idle_left_ = 0;   ///< idle bytes that give_up_unmapped() found to be mapped still
};

}  // namespace wherry::memory
