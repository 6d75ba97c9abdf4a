// SPDX-License-Identifier: Apache-2.0
// The leases of a server, and the budget that they share. Not thread-safe.
//
// The pages of all leases count against the budget, granted or free. A free lease stays warm until another lease needs
// the budget, so that the next file causes no page faults.
//
// Small files get small leases, because the cost of a new lease is that of its pages. A small lease keeps its size; a
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
  std::size_t unit = 0;   ///< bytes; larger leases are multiples of it
  std::size_t most = 0;   ///< bytes of the largest lease; a multiple of the unit
};

/// How much memory a request may use.
enum class Within : std::uint8_t {
  spare,        ///< a warm lease, or a small part of the budget: for a worker that already has a lease
  budget,       ///< the whole budget
  over_budget,  ///< as much as the machine has
};

class Pool {
 public:
  explicit Pool(PoolLimits limits) : limits_(limits) {}

  /// Returns a lease of at least `bytes` (at most PoolLimits::most), or null if there is not enough memory.
  /// @param liked   preferred bytes, up to a unit, used if available
  /// @param known   numbers of leases that the worker has mapped: it can use them again at no cost
  std::unique_ptr<Lease> take(std::size_t bytes, std::size_t liked, std::span<const std::uint64_t> known,
                              Within within);
  [[nodiscard]] bool may_grow(const Lease& lease) const { return lease.memory().size() == limits_.most; }
  /// Enlarges a granted lease for which may_grow() is true. False if there is not enough memory.
  bool grow(Lease& lease, std::size_t bytes, Within within);
  void give_back(std::unique_ptr<Lease> lease);
  /// Destroys a lease that a worker without a session may still write into. Its memory is not used again.
  void retire(std::unique_ptr<Lease> lease);

  [[nodiscard]] const PoolLimits& limits() const { return limits_; }
  [[nodiscard]] std::size_t used() const { return used_; }
  [[nodiscard]] std::size_t warm() const { return warm_; }
  [[nodiscard]] std::size_t leases() const { return leases_; }
  [[nodiscard]] std::size_t held() const { return used_ - warm_; }
  /// Returns the number of granted leases of a unit or more.
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
  Free free_;             ///< least recently used first
  std::size_t used_ = 0;  ///< backed bytes of all leases
  std::size_t warm_ = 0;  ///< backed bytes of the free leases
  std::size_t leases_ = 0;
  std::size_t large_held_ = 0;
  std::uint64_t last_number_ = 0;
};

}  // namespace wherry::root
