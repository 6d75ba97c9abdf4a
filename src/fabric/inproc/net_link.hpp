// SPDX-License-Identifier: Apache-2.0
// Simulates the network between the two ends of an "inproc-net" connection, with the worst behaviour that is allowed:
//
//  - Memory changes only while an engine of its side runs. That is the service thread, which sleeps up to 300 us first,
//    or a waiter that calls `progress`, which parks the service thread.
//  - The sender's memory is free once the wire has a put, long before its delivery. Puts are delivered in pieces, in
//  any
//    order, with torn words. Only the word of a signal is stored whole, after everything that was sent before it.
//  - A full queue takes nothing for a while.
//  - Sources that are not registered break the connection.
//  - A closed end drops what was not acknowledged. The other end notices that up to 50 ms later.
//  - The cable can be cut: nothing arrives, and after a limit each side considers the other dead, although both live.
//
// May include: base, arch, layout, memory.
#pragma once

#include <array>
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
#include "fabric/send_queue.hpp"
#include "fabric/service_park.hpp"

namespace wherry::fabric::inproc {

/// How words travel: with a payload, as with libfabric's tcp provider, or in separate messages.
enum class WordsTravel : std::uint8_t { with_payload, alone };

/// Thread-safe. `side` is the side that calls.
class NetLink final : public Carried, public std::enable_shared_from_this<NetLink> {
 public:
  using Item = SendQueue::Item;

  NetLink(std::array<Side*, 2> sides, WordsTravel words, std::uint64_t seed)
      : sides_(sides), words_(words), random_(static_cast<std::minstd_rand::result_type>(seed)) {}

  /// Takes a prefix of a put. 0 if the queue is full; then rings `space` once it has room. Also 0 if the connection is
  /// dead or the source is not registered.
  std::size_t put(std::size_t side, std::uint64_t to, std::span<const std::byte> source);
  /// Takes the whole item. False if the connection is dead, or source or destination is not registered.
  bool push(std::size_t side, Item item);
  [[nodiscard]] bool has_room(std::size_t side);
  /// Blocks until everything pushed before was delivered and acknowledged.
  Result flush(std::size_t side, const Deadline& deadline);
  void progress(std::size_t side, Bell bell);
  void end_progress(std::size_t side, Bell bell);
  [[nodiscard]] bool is_gone(std::size_t side);
  /// Ends this side. Afterwards nothing accesses its memory or the sources of its puts.
  void leave(std::size_t side) noexcept;

  /// For tests: nothing arrives from now on, and after `limit` each side considers the other dead.
  void cut(std::chrono::nanoseconds limit);
  void heal();

  std::optional<Clock::time_point> run() override;

 private:
  /// State of the service thread. `called`: it runs because there is work. `parked`: waiters drive all sides with work.
  enum class Service : std::uint8_t { idle, parked, called };
  /// A part of a message's payload that is delivered at once.
  struct Piece {
    std::size_t from;
    std::size_t bytes;
  };
  struct Message {
    Item item;
    std::vector<std::byte> payload;
    std::vector<Piece> pieces;  ///< pieces that are not delivered yet
    Clock::time_point not_before;
  };
  /// From one side to the other.
  struct Direction {
    SendQueue queue;
    std::deque<Message> wire;
    std::size_t wire_bytes = 0;
    std::size_t unacknowledged = 0;  ///< delivered messages that the sender's engine does not know of yet
    std::uint64_t delivered = 0;     ///< number of the last push that was delivered
    std::uint64_t acknowledged = 0;
    bool wants_room = false;  ///< a put took nothing
    std::uint64_t rung[2] = {};
  };

  static constexpr std::size_t kMostQueued = std::size_t{128} << 10;
  static constexpr std::size_t kMostItems = 64;
  static constexpr std::size_t kMostOnWire = std::size_t{256} << 10;
  static constexpr std::size_t kMostPieces = 4;

  [[nodiscard]] Direction& from(std::size_t side) { return directions_[side]; }
  [[nodiscard]] bool has_room(const Direction& direction) const;
  bool accept(std::size_t side, Item item);
  bool refuse_unregistered(std::size_t side, const Item& item);
  void tick(Clock::time_point now);
  void declare_gone(std::size_t side);
  bool advance(std::size_t side, Clock::time_point now);
  bool deliver(std::size_t side, Clock::time_point now);
  static void deliver_piece(Message& message, std::size_t which);
  bool retire(std::size_t side);
  void store(std::size_t side, const SendQueue::Word& word);
  bool acknowledge(std::size_t side);
  bool transmit(std::size_t side, Clock::time_point now);
  void cut_into_pieces(Message& message);
  bool drive(std::size_t side, Clock::time_point now);
  [[nodiscard]] bool has_work(std::size_t side);
  void call_service_for(std::size_t side, Clock::time_point now);
  void call_service(Clock::time_point now);
  void set_service(Service service, Clock::time_point at);
  [[nodiscard]] std::optional<Clock::time_point> next_run(const std::array<std::optional<Clock::time_point>, 2>& parked,
                                                          Clock::time_point now) const;
  std::size_t below(std::size_t limit) { return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_); }

  std::mutex mutex_;
  std::condition_variable progress_;
  const std::array<Side*, 2> sides_;
  const WordsTravel words_;
  std::minstd_rand random_;
  std::array<Direction, 2> directions_;  // [side that sends]
  std::array<bool, 2> left_{};
  std::array<bool, 2> gone_{};                               // [side]: the other side is gone, and this one knows
  std::array<std::optional<Clock::time_point>, 2> gone_at_;  // [side]: when it will learn that the other is gone
  bool cut_ = false;
  std::array<ServicePark, 2> parks_;
  Service service_ = Service::idle;
  Clock::time_point service_at_{};  ///< when the service runs, or checks whether the leases have expired
};

}  // namespace wherry::fabric::inproc
