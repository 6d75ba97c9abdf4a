// SPDX-License-Identifier: Apache-2.0
// One worker's connection, as the server sees it. The functions of BufferAllocator perform the transitions, under its
// lock; `close` is here.
//
//   state     writes into  in the   entered by                             means
//             a lease      queue
//   greeting  no           no       join: a connection                     nothing was received yet
//   idle      no           no       greet: a good `hello` when greeting;   takes part
//                                   leave_lease: a `leave`, or a `post`
//                                   with kRootLeaves, when filling
//   waiting   no           yes      need: a `need` when idle               asked for a lease
//   filling   yes          no       try_grant: memory, when waiting or     writes files into the lease
//                                   growing
//   growing   yes          yes      need: a `need` when filling            asked for more of the lease
//   finished  no           no       finish: a `finished` when idle, with   was sent farewell
//                                   no file left to be done
//   closing   as before    as       close, when idle, waiting, filling     broke the rules, was refused or dropped, or
//                          before   or growing                             cannot be served: its end is an event
//   rejected  no           no       close, when greeting or finished       the same, but without an event: the program
//                                                                          has no `joined`, or already has `finished`
//
// `post` and `listen` are valid in idle and filling, and change the state only as above. Any other message closes the
// session. So does a full ring to the worker. BufferAllocator::leave removes the session from any state: after the end
// of the connection, or when the server's thread finds it closing or rejected. Until then, a closing session may still
// be granted the memory that it waits for.
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

/// The leases that are registered with a worker as windows. Each has its own offset.
class Shown {
 public:
  /// Registers the part of a lease that has pages, and returns its offset. Throws Error.
  std::uint64_t show(Windows windows, Lease& lease);
  /// Returns the numbers of the registered leases.
  [[nodiscard]] std::vector<std::uint64_t> numbers() const;

 private:
  /// More than a client keeps mapped (MappedWindows::kMost). The client sooner or later unmaps a window removed here.
  static constexpr std::size_t kMost = 16;
  struct Window {
    std::uint64_t lease = 0;
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
  };
  std::list<Window> windows_;  ///< least recently shown first
  std::uint64_t next_offset_ = 0;
};

/// A lease that a worker holds: it writes into it, or files in it are not done.
struct GrantedLease {
  std::unique_ptr<Lease> range = {};
  Places files = {};           ///< files that are not done
  std::size_t posted = 0;      ///< files that the worker has posted from it
  bool over_budget = false;    ///< granted over the budget, for a file that is not posted yet
  bool recalled = false;       ///< the worker was asked to leave it
  bool left = false;           ///< the worker has left it and writes no more there
  bool untrustworthy = false;  ///< the session has ended, but the worker may still write there
};

/// One worker's connection and state. Guarded by BufferAllocator's lock. The server's thread alone receives from
/// `frames`, without the lock.

struct Session {
  enum class State : std::uint8_t { greeting, idle, waiting, filling, growing, finished, closing, rejected };

  Session(Stream stream, std::uint64_t number) : frames(std::move(stream)) {
    worker = std::make_shared<Worker>();
    worker->number = number;
    worker->peer = frames.stream().peer();
  }

  [[nodiscard]] bool is_closing() const { return state == State::closing || state == State::rejected; }
  /// Whether the program has received the worker's `joined` event, and neither `finished` nor `gone`.
  [[nodiscard]] bool takes_part() const {
    return state != State::greeting && state != State::finished && state != State::rejected;
  }
  /// Marks the session for removal. Only the first reason is kept.
  void close(std::string_view why) {
    if (is_closing()) return;
    state = takes_part() ? State::closing : State::rejected;
    reason = why;
  }

  /// Returns false if the message could not be sent. A full ring closes the session. A broken connection does not,
  /// because messages that the worker sent before must still be received.
  bool send(const RootRecord& record, std::string_view text = {}) {
    const Result told = try_send(frames, record, text);
    if (told.would_block()) close("it does not read the server's messages");
    return told.ok();
  }

  FramedStream frames;
  std::shared_ptr<Worker> worker;
  State state = State::greeting;
  std::string reason;  ///< why it is closing or rejected
  Shown shown;
  std::shared_ptr<GrantedLease> lease;  ///< the lease that the worker writes into
  std::size_t wanted = 0;               ///< bytes that the last `need` asked for
  std::size_t leases = 0;               ///< leases held, including those left with files that are not done
  bool large = false;                   ///< the worker fills leases faster than they are read: it gets whole units
  std::size_t posted = 0;               ///< files that are not done
  std::uint64_t last_sequence = 0;
  std::vector<std::uint64_t> unreported;  ///< done files that were not reported to the worker yet
  bool listens = false;                   ///< the worker wants each done file reported at once
};

}  // namespace wherry::root
