// SPDX-License-Identifier: Apache-2.0
// What `auto` does with a read that the cache does not have, from running estimates of what reads cost here.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <wherry/files.hpp>

namespace wherry::file {

/// From any thread: the estimates are approximate. All times are nanoseconds. Two ways are compared, per power of two
/// of a read's bytes:
///   straight  the source reads into the caller's buffer (`local` or `host`); nothing is cached
///   filled    `comp`: the source reads blocks, and as far ahead as it pays; what follows in order are hits
class PathChoice {
 public:
  /// What to begin with.
  struct Costs {
    double call;         ///< straight
    double byte;         ///< likewise
    double filled_call;  ///< filled
    double filled_byte;  ///< likewise
  };
  explicit PathChoice(const Costs& priors);

  struct Choice {
    bool fill = false;   ///< at once, and ahead
    bool admit = false;  ///< otherwise: what was wanted before is filled
    bool timed = false;  ///< measure this one
    wherry::files::Reason reason{};
  };
  /// For a read of `bytes` that is not in the cache. `in_order`: it begins where the last one ended; then filling
  /// fetches `fetched` bytes with it.
  Choice choose(std::size_t bytes, bool in_order, std::size_t fetched);
  /// Whether a hit is worth while where there is one: large reads may be the kernel's own strength.
  [[nodiscard]] bool hits_pay(std::size_t bytes) const {
    return hits_pay_[class_of(bytes)].load(std::memory_order_relaxed);
  }
  /// Every so many hits one is to be measured: two looks at the clock take as long as copying 2 KiB. A
  /// power of two.
  static std::uint32_t hits_between(std::size_t bytes) { return bytes < kLargeHit ? 64 : 8; }
  /// To be asked then: whether to read straight instead, to know what that costs by now.
  bool tries_straight(std::size_t bytes);
  /// Where hits do not pay: whether to take one, if there is one.
  bool tries_hit(std::size_t bytes);

  void measured_hit(std::size_t bytes, double ns);
  void measured_straight(std::size_t bytes, double ns);
  /// `fetched` bytes were read into blocks by one read.
  void measured_filled(std::size_t fetched, double ns);

  [[nodiscard]] double hit(std::size_t bytes) const { return hits_[class_of(bytes)].of(bytes); }
  [[nodiscard]] double straight(std::size_t bytes) const { return straights_[class_of(bytes)].of(bytes); }
  [[nodiscard]] double filled(std::size_t fetched) const { return fills_[class_of(fetched)].of(fetched); }

 private:
  static constexpr std::size_t kLargeHit = std::size_t{32} << 10;
  static constexpr std::size_t kClasses = 32;
  static std::size_t class_of(std::size_t bytes) {
    const std::size_t power = bytes == 0 ? 0 : static_cast<std::size_t>(std::bit_width(bytes - 1));
    return power < kClasses ? power : kClasses - 1;
  }

  /// A running mean of what reads of about the same size cost, per byte: in 2^-20 ns, so that it is one word.
  class Estimate {
   public:
    void set(double ns, std::size_t bytes);
    void add(double ns, std::size_t bytes);
    [[nodiscard]] double of(std::size_t bytes) const;

   private:
    std::atomic<std::uint64_t> per_byte_{0};
    std::atomic<std::uint32_t> samples_{0};  // the first count for more
  };

  /// What went one way since the other was tried.
  class Since {
   public:
    bool is_enough(double calls, double ns, double other);

   private:
    std::atomic<double> calls_{0};
    std::atomic<double> ns_{0};
  };

  void compare_hits(std::size_t bytes);

  std::array<Estimate, kClasses> hits_;
  std::array<Estimate, kClasses> straights_;
  std::array<Estimate, kClasses> fills_;
  std::array<std::atomic<bool>, kClasses> hits_pay_;
  std::array<std::atomic<std::uint32_t>, kClasses> choices_{};
  std::array<Since, kClasses> since_;
  std::array<Since, kClasses> hits_taken_;
};

}  // namespace wherry::file
