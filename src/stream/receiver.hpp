// SPDX-License-Identifier: Apache-2.0
// The receiving half of a stream: the consumer of the ring in this side's memory. Used by one thread at a time.
#pragma once

#include <cstddef>
#include <span>

#include <wherry/stream.hpp>

#include "fabric/fabric.hpp"
#include "layout/stream_page.hpp"
#include "ring/ring.hpp"
#include "stream/connection_state.hpp"
#include "stream/receive_coalescing.hpp"
#include "stream/split_copy.hpp"
#include "stream/statistics.hpp"
#include "stream/waiter.hpp"
#include "stream/watcher.hpp"

namespace wherry::stream {

class Receiver {
 public:
  /// @param capacity          of this side's ring, which fills the segment behind its page
  /// @param connection_state  shared by both directions
  Receiver(fabric::Connection& connection, std::size_t capacity, ConnectionState& connection_state,
           layout::StatisticsRecord& counters);

  [[nodiscard]] Result try_receive(std::span<const iovec> buffers);
  [[nodiscard]] Result receive(std::span<const iovec> buffers, fabric::Deadline deadline);
  [[nodiscard]] Result receive_all(std::span<std::byte> buffer, fabric::Deadline deadline);
  /// Fills `buffer` from bytes known to have arrived. False, and nothing was moved: they do not suffice, `buffer` is
  /// empty or the stream was cancelled.
  [[nodiscard]] bool receive_at_once(std::span<std::byte> buffer);
  ConstRegions peek(std::size_t want);
  [[nodiscard]] Result consume(std::size_t bytes);
  [[nodiscard]] Result wait_readable(fabric::Deadline deadline);
  /// The same with receive coalescing (receive_coalescing.hpp): for a caller that found the ring empty and takes
  /// everything that comes.
  [[nodiscard]] Result wait_for_more(fabric::Deadline deadline);
  /// The same without waiting: would_block if nothing has come. Returns credit and checks for a death, as try_receive
  /// does.
  [[nodiscard]] Result try_readable();
  /// Tells the sender that nothing more will be received.
  void close();
  int descriptor();
  int event_descriptor();

  // For a watcher: only the watcher arms and silences the bell, except for a blocking call that sleeps on it ----------
  /// Sets the watcher. After setting it to null, call `take_bell_back`.
  void watch(Watcher* watcher) { watcher_ = watcher; }
  [[nodiscard]] Watcher* watcher() const { return watcher_; }
  void take_bell_back();
  /// Returns state(), without a system call.
  [[nodiscard]] Result look() { return state(); }
  /// Returns the owed credit and arms the bell. False: something can be received, and the bell is not armed.
  bool arm_bell();
  [[nodiscard]] bool is_mapped() const { return remote_ != nullptr; }
  /// On a put fabric: makes progress (Connection::progress). False: polling gains nothing.
  [[nodiscard]] bool progress() {
    connection_.progress(fabric::Bell::data);
    return connection_.progresses();
  }
  void end_progress() { connection_.end_progress(fabric::Bell::data); }
  /// Call it after the bell rang: silences it, and checks whether a death rang it.
  void on_bell();

  [[nodiscard]] std::size_t capacity() const { return consumer_.capacity(); }
  [[nodiscard]] bool cancelled() const { return connection_state_.cancelled.load(std::memory_order_relaxed); }

 private:
  /// Returns moved (how many bytes wait), would_block, end or failed, without a system call.
  [[nodiscard]] Result state();
  template <class Ready>
  bool look_for_bytes(Ready&& ready, fabric::Deadline deadline) {
    return remote_ != nullptr ? spin_.look(ready, deadline)
                              : spin_.look_through(connection_, fabric::Bell::data, ready, deadline);
  }
  [[nodiscard]] Result copy_out(std::span<const iovec> buffers);
  enum class Need : std::uint8_t { something, all };
  [[nodiscard]] Result receive_split(std::span<std::byte> buffer, Need need);
  [[nodiscard]] Result take_split(std::span<std::byte> buffer);
  void end_split(const Result& result);
  void bell_used();
  void account(std::size_t bytes);
  void return_credit();
  void look_for_death(bool always);
  void look_when_armed();
  void rearm_descriptor();

  fabric::Connection& connection_;
  const layout::StreamPage& own_page_;
  std::byte* remote_;  ///< the peer's segment, null on put fabrics
  ring::Consumer consumer_;
  ConnectionState& connection_state_;
  layout::StatisticsRecord& counters_;
  SpinBudget spin_;
  ReceiveCoalescing coalescing_;
  SplitReceiver split_;
  std::size_t shown_ = 0;
  bool polled_ = false;        ///< the program uses a descriptor
  bool event_polled_ = false;  ///< an event descriptor: signals only what comes after an attempt that would block
  Watcher* watcher_ = nullptr;
  SteadyClock::time_point next_look_{};
};

}  // namespace wherry::stream
