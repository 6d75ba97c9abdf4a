// SPDX-License-Identifier: Apache-2.0
// One peer of a mailbox, from the first attempt to connect until it is forgotten.
//
// May include: base, layout, fabric.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>

#include <wherry/address.hpp>

#include "fabric/fabric.hpp"
#include "mailbox/early.hpp"
#include "mailbox/incoming.hpp"
#include "mailbox/outgoing.hpp"

namespace wherry::mailbox {

struct Pair;

/// Identifies the event source of an entry of a mailbox's epoll set.
struct Source {
  enum class Kind : std::uint8_t { interruption, port, attempt, data, space };
  Kind kind;
  Pair* pair = nullptr;
};

/// States of a pair, and the function that leads to each:
///
///   from                  to          by
///   (new)                 connecting  start
///   connecting            waiting     finish_attempt: two attempts crossed, and this one gives way to the peer's
///   waiting               connecting  retry
///   connecting, waiting   open        finish_attempt, change_over
///   (new)                 open        accept
///   open                  waiting     end_of_gone: it gave way, as above
///   open                  open        change_over
///   any                   lost        lose
enum class State : std::uint8_t { connecting, waiting, open, lost };

/// The room that a blocked send waits for.
struct WantedRoom {
  enum class Place : std::uint8_t {
    any,      ///< room for a part of a message
    whole,    ///< room for a whole message of `bytes`
    section,  ///< the same, in the section without the overflow
  };
  Place place = Place::any;
  std::uint64_t bytes = 0;
};

struct Pair {
  explicit Pair(std::uint32_t name) : number(name) {}
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  const std::uint32_t number;

  // The connection.
  State state = State::connecting;
  bool initiated = false;  ///< this side made the attempt or connection
  bool gone = false;       ///< the peer closed or died
  unsigned attempts = 0;
  int error = 0;                   ///< of a lost pair: an errno value, 0 if it ended in order
  std::uint64_t mailbox = 0;       ///< the peer's number for itself; 0: not known yet
  std::optional<Address> address;  ///< where the peer listens
  std::optional<Outgoing> out;     ///< while open; destroyed after the connection, which may still read it
  std::optional<Incoming> in;      ///< likewise
  std::unique_ptr<fabric::Connecting> attempt;
  std::unique_ptr<fabric::Connection> connection;
  fabric::PrivateMemory* private_memory = nullptr;  ///< of the connection; null: the fabric has none
  EarlySender early;                                ///< messages sent before the peer grants a section
  std::unique_ptr<EarlyMessages> early_received;    ///< read before the section; null: none is left
  bool claims_again = false;  ///< claim early data again after the peer's first grant: ProgressEngine::serve
  std::size_t peers_header = 0;

  // Doorbells.
  bool active = false;               ///< its words are polled; otherwise its bell is armed
  unsigned idle_looks = 0;           ///< looks that found nothing since the last one that found something
  std::list<Pair*>::iterator place;  ///< while open
  Source attempt_source{Source::Kind::attempt, this};
  Source data_source{Source::Kind::data, this};
  Source space_source{Source::Kind::space, this};

  // WriteInterest.
  bool wants_room = false;  ///< a send found none
  WantedRoom wanted_room;   ///< the room that it waits for

  // SectionAllocator.
  std::uint32_t weight = 0;   ///< as a declared neighbour
  bool has_lane = false;      ///< a lane was added to its share of the budget
  bool has_sent = false;      ///< or its initial section is the full header
  std::uint64_t changes = 0;  ///< agreed changes of the size of its section here

  // Receiving.
  unsigned turn = 0;         ///< pieces since its last turn began
  bool half_copied = false;  ///< try_receive has begun to copy its message

  [[nodiscard]] bool is_open() const noexcept { return state == State::open; }
  /// Whether a message sent now becomes early data.
  [[nodiscard]] bool sends_early() const noexcept {
    return is_open() ? out->capacity() == 0 : state == State::connecting;
  }
};

}  // namespace wherry::mailbox
