// SPDX-License-Identifier: Apache-2.0
// The leases of a server, and the budget they share. Not for several threads.
//
// The pages of a lease count, granted or free: a free lease stays warm, so that the next file meets no page fault,
// until another lease needs the budget.
//
// Small files have small leases, for a new one costs what its pages do. Those have the size that they began with; a
// lease of a unit or more grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>

#include "lease.hpp"

namespace wherry::root {

struct PoolLimits {
  std::size_t budget = 0;
  std::size_t least = 0;  ///< bytes of the smallest lease
  std::size_t unit = 0;   ///< larger leases are whole units
  std::size_t most = 0;   ///< bytes of a lease; whole units
};

/// What may be used for a request.
enum class Within : std::uint8_t {
  spare,        ///< what is warm, or a small part of the budget: for a worker that has a lease already
  budget,       ///< all of it
  over_budget,  ///< as much as the machine has
};

class Pool {
 public:
  explicit Pool(PoolLimits limits) : limits_(limits) {}

  /// A lease of at least `bytes` (at most as many as a lease may have), or none.
  /// @param liked   if there is as much, up to a unit
  /// @param known   numbers of leases that the asker has mapped: they cost it nothing to use again
  std::unique_ptr<Lease> take(std::size_t bytes, std::size_t liked, std::span<const std::uint64_t> known,
                              Within within);
  [[nodiscard]] bool may_grow(const Lease& lease) const { return lease.memory().size() == limits_.most; }
  /// Makes a lease that is held, and may grow, larger, or returns false.
  bool grow(Lease& lease, std::size_t bytes, Within within);
  void give_back(std::unique_ptr<Lease> lease);
  /// For a lease that a worker without a session may still write into: its memory is used no more.
  void retire(std::unique_ptr<Lease> lease);

  [[nodiscard]] const PoolLimits& limits() const { return limits_; }
  [[nodiscard]] std::size_t used() const { return used_; }
  [[nodiscard]] std::size_t warm() const { return warm_; }
  [[nodiscard]] std::size_t leases() const { return leases_; }
  [[nodiscard]] std::size_t held() const { return used_ - warm_; }
  /// Leases of a unit or more that are held.
  [[nodiscard]] std::size_t large_held() const { return large_held_; }
  [[nodiscard]] bool is_small(std::size_t bytes) const { return size_for(bytes) < limits_.unit; }

 private:
  using Free = std::list<std::unique_ptr<Lease>>;

  [[nodiscard]] std::size_t size_for(std::size_t bytes) const;
  std::unique_ptr<Lease> take_sized(std::size_t size, std::span<const std::uint64_t> known, Within within);
  bool fit_budget(std::size_t bytes, const Lease* but, Within within);
  void back(Lease& lease, std::size_t bytes);
  std::unique_ptr<Lease> pick(Free::iterator free);
  std::unique_ptr<Lease> make(std::size_t addresses);
  static bool is_in(std::span<const std::uint64_t> known, const Lease& lease);
  Free::iterator best_warm(std::size_t wanted, std::span<const std::uint64_t> known);

  PoolLimits limits_;
  Free free_;             ///< the longest unused first
  std::size_t used_ = 0;  ///< backed bytes of all leases
  std::size_t warm_ = 0;  ///< of the free ones
  std::size_t leases_ = 0;
  std::size_t large_held_ = 0;
  std::uint64_t last_number_ = 0;
};

}  // namespace wherry::root
