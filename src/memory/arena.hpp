// SPDX-License-Identifier: Apache-2.0
// Memory that this process exposes: how memory that the caller already has becomes reachable.
//
// One sparse memfd per process, the arena, holds all of it. The caller's pages are copied there and mapped again from
// there, at the same address. So a peer that has the arena's descriptor reaches all that is exposed, whenever it wants;
// the same page in many windows is the same memory; and what a peer has mapped outlives the owner.
//
//  - Places in the arena are handed out once, in growing order: a late store to memory that is no longer exposed brings
//    a page to life that is never read, and never meets another window.
//  - What was exposed stays where it is when it is exposed no longer: to give the caller private pages back, they would
//    have to be copied while its other threads may be writing. Exposing it again is free. The pages of memory that the
//    caller has unmapped since are given back to the system, at the latest when there are kMostIdle bytes of them.
//  - A forked child has private copies of what its parent exposed, as of any memory, and an arena of its own.
//  - Memory that cannot be moved (shared mappings of files, read-only pages) is named by its address instead; peers
//    reach it with a kernel copy, and cannot map it.
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

  /// This process's, made at first use. Throws Error: EMFILE, ENOMEM.
  static Arena& instance();
  /// Registers what is to be done when the process forks. Handlers of fork that hold a lock under which expose() is
  /// called must be registered after this.
  static void handle_forks();

  /// `memory`: whole pages. Other threads may go on using it; what they store meanwhile is lost only where the kernel
  /// cannot make them wait (page_exchange.hpp). Throws Error: EINVAL; EFAULT if some of it is not mapped, cannot be
  /// read, or lies behind the end of its file; ENOMEM, EMFILE. From any thread.
  std::shared_ptr<LocalRegion> expose(std::span<std::byte> memory);

  /// Whether it exposes that now, for fabrics with both sides in this process.
  bool exposes(const RemoteKey& key, std::size_t bytes);

  [[nodiscard]] const std::shared_ptr<ArenaView>& view() const { return view_; }

 private:
  class ArenaLocalRegion;
  struct Part;

  Arena();

  static std::atomic<Arena*>& current();  ///< null until the first use, and in a forked child
  static std::mutex& making();            ///< held while one is made
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
  std::mutex mutex_;  // guards what follows, and the caller's mappings while they are looked at and replaced
  RangeCounts used_;
  std::uint64_t cursor_ = 0;
  std::uint64_t last_bytes_ = 0;  ///< of the memory last given a place of its own
  std::uint64_t idle_left_ = 0;   ///< idle bytes that were found to be mapped still
};

}  // namespace wherry::memory
