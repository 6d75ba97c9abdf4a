// SPDX-License-Identifier: Apache-2.0
#include "pool.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "adapters/root/layout/wire.hpp"

namespace wherry::root {

std::unique_ptr<Lease> Pool::take(std::size_t bytes, std::size_t liked, std::span<const std::uint64_t> known,
                                  Within within) {
  const std::size_t needed = size_for(bytes);
  const std::size_t size = std::max(needed, std::min(liked, limits_.unit));
  auto lease = take_sized(size, known, within);
  return lease == nullptr && size != needed ? take_sized(needed, known, within) : std::move(lease);
}

std::unique_ptr<Lease> Pool::take_sized(std::size_t size, std::span<const std::uint64_t> known, Within within) {
  if (const auto warm = best_warm(size, known); warm != free_.end()) return pick(warm);
  // Prefers a lease that the worker has mapped, then one without pages: another worker may need the warm one next.
  const std::size_t addresses = size < limits_.unit ? size : limits_.most;
  const auto choose = [&](auto&& good) {
    return std::find_if(free_.rbegin(), free_.rend(),
                        [&](const auto& lease) { return lease->memory().size() == addresses && good(*lease); });
  };
  auto chosen = choose([&](const Lease& lease) { return is_in(known, lease); });
  if (chosen == free_.rend()) chosen = choose([](const Lease& lease) { return lease.backed() == 0; });
  Lease* const lease = chosen == free_.rend() ? nullptr : chosen->get();
  const std::size_t backed = lease == nullptr ? 0 : lease->backed();
  if (!fit_budget(size - backed, lease, within)) return nullptr;
  auto taken = lease == nullptr ? make(addresses) : pick(std::prev(chosen.base()));
  back(*taken, size);
  return taken;
}

std::unique_ptr<Lease> Pool::make(std::size_t addresses) {
  auto lease = std::make_unique<Lease>(last_number_ + 1, addresses);
  ++last_number_;
  ++leases_;
  if (may_grow(*lease)) ++large_held_;
  return lease;
}

bool Pool::grow(Lease& lease, std::size_t bytes, Within within) {
  if (bytes <= lease.backed()) return true;
  const std::size_t wanted = size_for(bytes);
  // Grows by at least a quarter, so that a large file grows in few steps.
  const std::size_t ahead = std::min(limits_.most, std::max(wanted, size_for(lease.backed() + lease.backed() / 4)));
  std::size_t size = ahead;
  if (!fit_budget(size - lease.backed(), nullptr, Within::budget)) {
    size = wanted;
    if (!fit_budget(size - lease.backed(), nullptr, within)) return false;
  }
  back(lease, size);
  return true;
}

void Pool::give_back(std::unique_ptr<Lease> lease) {
  warm_ += lease->backed();
  if (may_grow(*lease)) --large_held_;
  free_.push_back(std::move(lease));
  fit_budget(0, nullptr, Within::over_budget);  // trims free leases if a grant exceeded the budget
}

void Pool::retire(std::unique_ptr<Lease> lease) {
  used_ -= lease->backed();
  --leases_;
  if (may_grow(*lease)) --large_held_;
}

/// Returns the size of a lease for a file of `bytes`. A small lease holds four such files. Its size is one of eight per
/// power of two, so that a lease which one worker leaves fits another.
std::size_t Pool::size_for(std::size_t bytes) const {
  if (bytes >= limits_.unit) return (bytes + limits_.unit - 1) / limits_.unit * limits_.unit;
  const std::size_t few = std::max(4 * bytes, limits_.least);
  const std::size_t step = std::max(std::bit_floor(few) / 8, layout::kRootPlace);
  return std::min((few + step - 1) / step * step, limits_.unit);
}

/// Whether `bytes` more may be used. Trims free leases other than `but` until the bytes fit the budget, least recently
/// used first. Trims none if trimming all would not be enough, unless `within` allows to exceed the budget.
bool Pool::fit_budget(std::size_t bytes, const Lease* but, Within within) {
  // Limits second leases to 1/8 of the budget. A small pool stays in the CPU caches: data that is written and soon read
  // never reaches memory.
  constexpr std::size_t kSpare = 8;
  if (within == Within::spare) return used_ + bytes <= limits_.budget / kSpare;
  const std::size_t kept = but == nullptr ? 0 : but->backed();
  if (within == Within::budget && used_ - (warm_ - kept) + bytes > limits_.budget) return false;
  for (auto free = free_.begin(); free != free_.end() && used_ + bytes > limits_.budget; ++free) {
    if (free->get() == but) continue;
    warm_ -= (*free)->backed();
    used_ -= (*free)->backed();
    (*free)->trim();
  }
  return true;
}

void Pool::back(Lease& lease, std::size_t bytes) {
  used_ += bytes - lease.backed();
  lease.back(bytes);
}

std::unique_ptr<Lease> Pool::pick(Free::iterator free) {
  auto lease = std::move(*free);
  free_.erase(free);
  warm_ -= lease->backed();
  if (may_grow(*lease)) ++large_held_;
  return lease;
}

bool Pool::is_in(std::span<const std::uint64_t> known, const Lease& lease) {
  return std::find(known.begin(), known.end(), lease.number()) != known.end();
}

/// Returns the best free lease with at least `wanted` bytes of pages. The most recently used one is in the CPU caches.
/// If the worker has mapped one of the last few, that is better: it also saves a mapping.
Pool::Free::iterator Pool::best_warm(std::size_t wanted, std::span<const std::uint64_t> known) {
  constexpr std::size_t kFew = 4;
  // Mapping a small lease costs more than loading it into the caches: all free leases are searched for a mapped one.
  const std::size_t most = wanted < limits_.unit ? free_.size() : kFew;
  auto best = free_.end();
  std::size_t looked = 0;
  for (auto free = free_.end(); free != free_.begin() && looked < most;) {
    --free;
    if ((*free)->backed() < wanted) continue;
    if (is_in(known, **free)) return free;
    if (best == free_.end()) best = free;
    ++looked;
  }
  return best;
}

}  // namespace wherry::root
