// SPDX-License-Identifier: Apache-2.0
// The sending half of a stream: the producer of the ring in the peer's memory. Used by one thread at a time.
//
// On a load/store fabric the producer writes the peer's ring itself. On a put fabric it writes a buffer of the same
// size on this side, the staging ring. Bytes are put from there to the same place in the peer's ring. A place is
// overwritten only after the peer's head has passed it. Its put is complete by then, so no completion is waited for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include <wherry/stream.hpp>

#include "fabric/fabric.hpp"
#include "layout/stream_page.hpp"
#include "ring/ring.hpp"
#include "stream/connection_state.hpp"
#include "stream/first_lap.hpp"
#include "stream/split_choice.hpp"
#include "stream/split_copy.hpp"
#include "stream/statistics.hpp"
#include "stream/waiter.hpp"

namespace wherry::stream {

inline std::span<const std::byte> bytes_of(const iovec& buffer) {
  return {static_cast<const std::byte*>(buffer.iov_base), buffer.iov_len};
}

class Sender {
 public:
  /// @param capacity          of the peer's ring, already checked
  /// @param connection_state  shared by both directions
  Sender(fabric::Connection& connection, std::size_t capacity, ConnectionState& connection_state,
         layout::StatisticsRecord& counters);

  [[nodiscard]] Result try_send(std::span<const iovec> buffers);
  /// Fast path: one buffer that fits a mapped ring now, with one copy and one publication. False: nothing was sent, use
  /// send().
  [[nodiscard]] bool send_at_once(std::span<const std::byte> bytes);
  [[nodiscard]] Result send(std::span<const iovec> buffers, fabric::Deadline deadline);
  Regions reserve(std::size_t want);
  [[nodiscard]] Result commit(std::size_t bytes);
  [[nodiscard]] Result wait_writable(std::size_t bytes, fabric::Deadline deadline);
  /// The same without waiting: on would_block the descriptor becomes readable once there is that much space.
  [[nodiscard]] Result try_writable(std::size_t bytes);
  [[nodiscard]] Result finish();
  /// Whether the peer has said that it has read everything.
  [[nodiscard]] bool is_all_read() { return producer_.space() == producer_.capacity(); }
  [[nodiscard]] Result limit_unread(std::size_t bytes);
  int descriptor();
  int event_descriptor();
  void raise_descriptor();

  [[nodiscard]] std::size_t capacity() const { return producer_.capacity(); }

 private:
  /// Returns why nothing can be sent any more: an errno value, or 0.
  int obstacle();
  [[nodiscard]] Result send_rest(std::span<const std::byte> bytes, fabric::Deadline deadline);
  [[nodiscard]] Result send_over_ring(std::span<const iovec> buffers, fabric::Deadline deadline);
  [[nodiscard]] Result send_large(std::span<const iovec> buffers);
  [[nodiscard]] Result send_run(std::span<const iovec> run, bool split);
  [[nodiscard]] bool is_to_be_split(const iovec& buffer) const;
  [[nodiscard]] Result send_split(std::span<const std::byte> bytes);
  std::optional<Result> over_invitation(std::span<const std::byte> bytes);
  std::optional<Result> over_offer(std::span<const std::byte> bytes);
  std::optional<Result> account_split(const std::optional<Result>& result);
  template <class Ready>
  bool look_for_space(Ready&& ready, fabric::Deadline deadline) {
    return remote_ != nullptr ? spin_.look(ready, deadline)
                              : spin_.look_through(connection_, fabric::Bell::space, ready, deadline);
  }
  template <class Ready>
  fabric::Wake sleep_for_space(Ready&& ready, fabric::Deadline deadline);
  [[nodiscard]] Result copy_and_publish(std::span<const iovec> buffers, std::size_t& copied);
  void set_pieces(std::size_t capacity);
  [[nodiscard]] std::size_t next_piece() const { return std::clamp(producer_.fill(), piece_, largest_piece_); }
  bool publish(std::size_t bytes);
  bool put_range(std::uint64_t from, std::size_t bytes);
  bool set_peers_word(std::size_t offset, std::uint64_t value);
  void watch_for_death();
  void look_for_death();
  bool rearm_descriptor();
  void silence_descriptor(bool always);

  fabric::Connection& connection_;
  const layout::StreamPage& own_page_;
  std::byte* remote_;             ///< the peer's segment, null on put fabrics
  std::byte* staging_ = nullptr;  ///< put fabrics only: points into staging_memory_
  ring::Producer producer_;
  FirstLap first_lap_;  ///< without a ring on put fabrics
  ConnectionState& connection_state_;
  layout::StatisticsRecord& counters_;
  SpinBudget spin_;
  SplitSender split_;
  std::optional<SplitChoice> choice_;  ///< none: everything that may be split is split
  std::size_t piece_ = 0;              ///< most bytes published at once if the receiver has read everything
  std::size_t largest_piece_ = 0;      ///< the same if it has many unread bytes; on mapped rings, piece_
  std::size_t reserved_ = 0;
  std::size_t wanted_ = 1;  ///< space at which the descriptor becomes readable
  bool finished_ = false;
  bool short_ = false;             ///< the last attempt found too little space
  bool polled_ = false;            ///< the program uses a descriptor
  bool event_polled_ = false;      ///< an event descriptor: signals only what comes after an attempt that would block
  bool descriptor_armed_ = false;  ///< the peer may ring it, or has rung it
  bool rang_self_ = false;         ///< this side has rung it
  std::int64_t next_look_ns_ = 0;
  std::int64_t seen_ns_ = 0;        ///< the clock when it was last read
  std::uint32_t publications_ = 0;  ///< publications since then
  std::uint32_t clock_each_ = 1;    ///< the clock is read once per this many publications
  std::shared_ptr<std::byte[]> staging_memory_;
};

/// Sleeps once on the bell for space, unless `ready()`.
template <class Ready>
fabric::Wake Sender::sleep_for_space(Ready&& ready, fabric::Deadline deadline) {
  const fabric::Wake wake = sleep_unless(connection_, fabric::Bell::space, deadline, ready, [&] {
    statistics::bump(counters_.send_sleeps, 1);
    statistics::set(counters_.asleep_sending, 1);
  });
  statistics::set(counters_.asleep_sending, 0);
  spin_.learn(connection_, fabric::Bell::space);
  if (wake == fabric::Wake::gone) connection_state_.gone.store(true, std::memory_order_release);  // GONE
  descriptor_armed_ = false;
  if (polled_) (void)rearm_descriptor();
  return wake;
}

}  // namespace wherry::stream
