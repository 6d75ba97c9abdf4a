// SPDX-License-Identifier: Apache-2.0
// The queue of puts and signals from one side to the other in the put form. A separate thread, the wire, carries them
// out: late, in pieces, in random order, and reading the source only then. It guarantees exactly the contract, so that
// code which relies on more fails here, not on a network.
// May include: base, arch, layout.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <vector>

#include "fabric/inproc/pair.hpp"
#include "fabric/inproc/wire.hpp"

namespace wherry::fabric::inproc {

class PutQueue final : public Carried, public std::enable_shared_from_this<PutQueue> {
 public:
  /// `target` is the side that signals arrive at; `page` says whether it sleeps.
  PutQueue(Side& target, const layout::BellPage& page, std::uint64_t seed);

  // For both threads of the sending side. They block while the queue is full, at most until the wire has made room.
  /// Queues a copy. Returns the number of bytes taken; 0 if the queue is dead.
  std::size_t copy(std::byte* to, std::span<const std::byte> from);
  bool signal(std::byte* word, std::uint64_t value, std::optional<Bell> bell);
  /// Blocks until nothing is queued. Fails with ETIMEDOUT, or with ECONNRESET if the queue is dead.
  Result flush(const Deadline& deadline);

  /// Drops everything that is queued. After it returns, the wire accesses no memory of either side. Thread-safe.
  void kill() noexcept;

  /// For the wire: carries out what is due. Returns when to call it again; empty if nothing is queued.
  std::optional<Clock::time_point> run() override;

 private:
  struct Step {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;  // null: a signal
    std::size_t bytes = 0;
    std::uint64_t value = 0;
    std::optional<Bell> bell = std::nullopt;
    Clock::time_point not_before{};
    bool done = false;
  };

  static constexpr std::size_t kMaxBytes = std::size_t{128} << 10;
  static constexpr std::size_t kMaxSteps = 96;
  static constexpr std::size_t kMaxPieces = 4;

  bool wait_for_room(std::unique_lock<std::mutex>& lock);
  void queue_pieces(std::byte* to, std::span<const std::byte> from);
  void queue(Step step);
  void hand_to_wire();
  Clock::time_point hold_back();
  std::size_t reach_of_shuffle();
  bool carry_out_copies(Clock::time_point now, Clock::time_point& next);
  bool retire();
  void deliver(const Step& signal);
  std::size_t below(std::size_t limit) { return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_); }

  std::mutex mutex_;
  std::condition_variable progress_;
  Side& target_;
  const layout::BellPage& page_;
  std::minstd_rand random_;
  std::deque<Step> steps_;
  std::vector<std::size_t> order_;  // used by one shuffle; a member to save the allocation
  std::array<std::uint64_t, 2> rung_{};
  std::size_t bytes_ = 0;
  bool with_wire_ = false;
  bool dead_ = false;
};

}  // namespace wherry::fabric::inproc
