// SPDX-License-Identifier: Apache-2.0
// The plan of fault injection: which faults, and how often. May include: base.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace wherry::fabric::faulty {

struct FaultPlan {
  std::uint64_t seed = 1;            ///< equal seeds and equal calls give equal faults
  std::uint64_t refuse = 0;          ///< per cent of connects that are refused
  std::uint64_t shorten = 0;         ///< per cent of puts that take only a part ("short" in the text)
  std::uint64_t reorder = 0;         ///< per cent of puts that are cut and held back behind later ones
  std::uint64_t delay = 0;           ///< each signal and wake-up is late by up to this many microseconds
  std::uint64_t spurious = 0;        ///< per cent of arms that are followed by a spurious ring
  std::uint64_t die = 0;             ///< a connection dies at its call of this number; 0: never
  std::uint64_t hide_map = 0;        ///< 1: map() is null, so that everything goes by put
  std::uint64_t deny = 0;            ///< per cent of accesses to private memory that stop short ("private" in the text)
  std::uint64_t unacknowledged = 0;  ///< 1: a flush never succeeds, as if the peer was stopped
  std::uint64_t hide_peer = 0;       ///< 1: peer() has no credentials, as on a network

  /// Parses a text such as "seed=1,short=10", with the names above. Throws Error(EINVAL) that lists them.
  static FaultPlan parse(std::string_view text);

  bool operator==(const FaultPlan&) const = default;
};

/// The pseudo-random numbers by which a plan is executed.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  bool percent(std::uint64_t chance) { return chance != 0 && below(100) < chance; }
  std::uint64_t below(std::uint64_t limit) { return limit == 0 ? 0 : random_() % limit; }

 private:
  std::mt19937_64 random_;
};

}  // namespace wherry::fabric::faulty
