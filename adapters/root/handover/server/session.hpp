// SPDX-License-Identifier: Apache-2.0
// One worker's connection, as the server sees it. The functions of BufferAllocator perform the transitions, under its
// lock; `close` is here.
//
//   state     writes into  in the   entered by                             means
//             a lease      queue
//   greeting  no           no       join: a connection                     nothing was received yet
//   idle      no           no       greet: a good `hello` when greeting;   takes part
//                                   leave_lease: a `leave`, or a `post`
//                                   that says so, when filling
//   waiting   no           yes      need: a `need` when idle               asked for a lease
//   filling   yes          no       try_grant: memory, when waiting or     writes files into the lease
//                                   growing
//   growing   yes          yes      need: a `need` when filling            asked for more of the lease
//   finished  no           no       finish: a `finished` when idle, with   was sent farewell
//                                   no file left to be done
//   closing   as before    as       close, when idle, waiting, filling     broke the rules, was refused or dropped, or
//                          before   or growing                             cannot be served: its end is an event
//   rejected  no           no       close, when greeting or finished       the same, of which there is no event: the
//                                                                          program does not know it, or not any more
//
// `post` and `listen` are for idle and filling, and change no state but as above; whatever else is received closes the
// session, and so does a message that it leaves no space for. From every state `leave` removes it: after the end of the
// connection, or for the server's thread, which looks for what is closing or rejected. What a closing one waits for may
// still be granted until then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <wherry/framed.hpp>

#include "adapters/root/handover/places.hpp"
#include "adapters/root/handover/wire.hpp"
#include "lease.hpp"
#include "server.hpp"

namespace wherry::root {

/// The leases that are registered with a worker, each at an offset of its own.
class Shown {
 public:
  /// Registers the part of a lease that has pages with the worker and returns the offset. Throws Error.
  std::uint64_t show(Windows windows, Lease& lease);
  /// Their numbers.
  [[nodiscard]] std::vector<std::uint64_t> numbers() const;

 private:
  /// More than a client keeps mapped, so a window that is removed here is unmapped there sooner or later.
  static constexpr std::size_t kMost = 16;
  struct Window {
    std::uint64_t lease = 0;
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
  };
  std::list<Window> windows_;  ///< the one shown longest ago first
  std::uint64_t next_offset_ = 0;
};

/// A lease that a worker has: to write into, or only because files in it are not done.
struct GrantedLease {
  std::unique_ptr<Lease> range = {};
  Places files = {};           ///< those not done
  std::size_t posted = 0;      ///< files that the worker has posted there
  bool over_budget = false;    ///< granted over the budget, for a file that is not posted yet
  bool recalled = false;       ///< the worker was asked to leave it
  bool left = false;           ///< the worker writes no more there
  bool untrustworthy = false;  ///< its session has ended, and the worker may write there all the same
};

struct Session {
  enum class State : std::uint8_t { greeting, idle, waiting, filling, growing, finished, closing, rejected };

  Session(Stream stream, std::uint64_t number) : frames(std::move(stream)) {
    worker = std::make_shared<Worker>();
    worker->number = number;
    worker->peer = frames.stream().peer();
  }

  [[nodiscard]] bool is_closing() const { return state == State::closing || state == State::rejected; }
  /// Whether the program has been told of the worker, and not of its end.
  [[nodiscard]] bool takes_part() const {
    return state != State::greeting && state != State::finished && state != State::rejected;
  }
  /// The first reason counts.
  void close(std::string_view why) {
    if (is_closing()) return;
    state = takes_part() ? State::closing : State::rejected;
    reason = why;
  }

  /// False if the message could not be sent. A full ring closes the session; a connection that is gone does not, for
  /// what it sent before is still to be received.
  bool send(const RootRecord& record, std::string_view text = {}) {
    const Result told = try_send(frames, record, text);
    if (told.would_block()) close("it does not read what it is told");
    return told.ok();
  }

  FramedStream frames;
  std::shared_ptr<Worker> worker;
  State state = State::greeting;
  std::string reason;  ///< of closing and rejected
  Shown shown;
  std::shared_ptr<GrantedLease> lease;  ///< the one it writes into
  std::size_t wanted = 0;               ///< bytes of it that the last `need` asked for
  std::size_t leases = 0;               ///< it has, with those that it left files in
  bool large = false;                   ///< its files are many: it is given units
  std::size_t posted = 0;               ///< files not done
  std::uint64_t last_sequence = 0;
  std::vector<std::uint64_t> unreported;  ///< done files that it was sent no message of
  bool listens = false;                   ///< it is sent one for each at once
};

}  // namespace wherry::root
