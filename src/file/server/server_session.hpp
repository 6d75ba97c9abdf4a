// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <wherry/stream.hpp>

#include "base/limited_log.hpp"
#include "file/server/client_processes.hpp"
#include "file/server/delegations.hpp"
#include "file/server/server_calls.hpp"
#include "file/server/server_handles.hpp"
#include "file/server/tickets.hpp"
#include "file/server/tree.hpp"
#include "file/wire/fault_point.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// What all sessions of a server share.
struct Service {
  Tree tree;
  HandleBudget budget;
  Terms terms;
  layout::FileHello hello{};
  AtFaultPoint at;
  ClientProcesses processes{};
  log::LimitedLog warnings{"wherry serve"};  ///< each of them is caused by a client
  Delegations delegations{budget, terms.delegates, terms.delegation_margin, terms.recall_timeout};
  Tickets tickets{budget};
};

/// One client's connection. Reads its requests, serves them one after the other, and never waits for the client longer
/// than kFullRingTimeout: what it cannot go on with now it goes on with when the stream says so. Nothing that comes
/// from the client is trusted; nonsense ends the session.
///
/// States of a session, and what leads from one to the next:
///
///   greeting   -> following  take_message: the hello is right
///   following  -> requests   follow: no earlier process of the client is served
///   requests   -> reading, gathering, writing   begin: a read, an append or set_xattr, a write
///   reading    -> requests   read_piece: the last piece is sent
///   gathering  -> requests   gather: all data has come, and is used at once
///   writing    -> requests   write_piece: the last data has come
///   requests   -> copying    begin: a copy
///   copying    -> requests   copy_piece: all is copied, or the file has ended
///   requests   -> watching   begin_watch: await_recalls
///   watching   -> requests   watch: there are recalls
///
/// and beside each of them an answer may be on its way out (`out_`), which goes first.
class ServerSession {
 public:
  enum class Next : std::uint8_t {
    when_readable,  ///< all that has come is served
    when_writable,  ///< the client's ring is full: its send descriptor tells when not
    later,          ///< nothing tells when it can go on: to be tried again
    at_once,        ///< there is more to do, but others have their turn first
    over,           ///< the connection is of no more use
  };

  ServerSession(Stream stream, Service& service);

  /// One turn: at most about kTurnBytes of data. Never throws.
  /// @param crowded  other clients wait: this one is woken as seldom as can be
  Next advance(bool crowded = false) noexcept;

  Stream& stream() { return stream_; }
  /// Readable when there is something to tell this client of its own accord; -1: it has not asked for that.
  [[nodiscard]] int recall_descriptor() const { return watcher_ ? watcher_->descriptor() : -1; }

 private:
  enum class State : std::uint8_t { greeting, following, requests, reading, gathering, writing, copying, watching };
  /// What a step came to; `on`: the next step may follow.
  enum class Step : std::uint8_t { on, readable, writable, later, over };

  Step step();
  Step send_out();
  Step take_message();
  Step greet();
  Step follow();
  Step begin();
  Step begin_read(OpenFile* file);
  Step begin_write(OpenFile* file);
  Step begin_gathering(int error);
  Step read_piece();
  Step read_aside(std::size_t bytes);
  Step gather();
  Step write_piece();
  Step begin_copy();
  Step copy_piece();
  Step perform();
  Step begin_watch();
  Step watch();
  void write_pages(const ConstRegions& seen);
  void look_for(std::span<const std::byte> data);
  Step nothing_came();
  void answer(const Outcome& outcome);
  [[nodiscard]] layout::FileAnswer head_of(std::size_t payload, bool last) const;
  Step break_off(const char* why);

  Stream stream_;
  Service& service_;
  std::optional<ClientProcesses::Member> member_;  ///< before `handles_`: until those are closed
  Handles handles_;
  Calls calls_;
  State state_ = State::greeting;
  std::size_t turn_ = 0;  ///< bytes that may still be moved in this turn
  bool crowded_ = false;

  // What comes in: a header, then its names.
  std::array<std::byte, sizeof(layout::FileRequest) + 2 * std::size_t{layout::kFileMaxName}> in_;
  std::size_t have_ = 0;
  std::size_t need_ = sizeof(layout::FileHello);
  Request request_;

  // What goes out.
  std::vector<std::byte> out_;
  std::size_t sent_ = 0;

  // The read, write, append or copy under way.
  Backing* backing_ = nullptr;  ///< of an open file: no other request comes in between
  bool appends_ = false;        ///< of a write: its file was opened for appends
  std::shared_ptr<Grant> by_;   ///< of a write: the ticket's that its file was opened by
  Backing* target_ = nullptr;   ///< of a copy
  std::uint64_t offset_ = 0;
  std::uint64_t target_offset_ = 0;
  std::uint64_t left_ = 0;      ///< bytes to come
  std::uint64_t moved_ = 0;     ///< bytes that are in the file
  int error_ = 0;               ///< of a write: what follows is dropped
  std::uint64_t position_ = 0;  ///< of its answer
  std::optional<Delegations::Client> watcher_;
  std::vector<std::byte> gathered_;  ///< data to be used at once; of a write the part of a page that has come last
};

}  // namespace wherry::file
