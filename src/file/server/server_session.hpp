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

/// Shared by all sessions of a server.
struct Service {
  Tree tree;
  HandleBudget budget;
  Terms terms;
  layout::FileHello hello{};
  AtFaultPoint at;
  ClientProcesses processes{};
  log::LimitedLog warnings{"wherry serve"};  ///< all are caused by clients
  Delegations delegations{budget, terms.delegates, terms.delegation_margin, terms.recall_timeout};
  Tickets tickets{budget};
  LockGraph lock_graph{};
};

/// One client's connection: reads its requests and serves them one at a time. Waits for the client at most
/// kFullRingTimeout; otherwise it returns and resumes when the stream is ready. Trusts nothing that the client sends; a
/// malformed request ends the session.
///
/// States of a session, and the function that causes each transition:
///
///   greeting   -> following  take_message: the hello is valid
///   following  -> requests   follow: no earlier process of the client is served
///   requests   -> reading, gathering, writing   begin: a read; an append or set_xattr; a write
///   reading    -> requests   read_piece: the last piece is sent
///   gathering  -> requests   gather: all data has arrived and is used at once
///   writing    -> requests   write_piece: the last data has arrived
///   requests   -> copying    begin: a copy
///   copying    -> requests   copy_piece: all is copied, or the source file has ended
///   requests   -> watching   begin_watch: await_recalls
///   watching   -> requests   watch: there are recalls
///
/// In each state an unsent answer (`out_`) may be pending, which is sent first.
class ServerSession {
 public:
  enum class Next : std::uint8_t {
    when_readable,  ///< everything that has arrived is served
    when_writable,  ///< the client's ring is full; its send descriptor reports space
    later,          ///< no descriptor reports progress; try again after a pause
    at_once,        ///< more work is ready, but other clients get a turn first
    over,           ///< the connection has ended
  };

  ServerSession(Stream stream, Service& service);

  /// Runs one turn, of at most about kTurnBytes of data. Never throws.
  /// @param crowded  other clients wait: wake this one as seldom as possible
  Next advance(bool crowded = false) noexcept;

  Stream& stream() { return stream_; }
  /// Readable when there are recalls for this client; -1: it has not asked for any.
  [[nodiscard]] int recall_descriptor() const { return watcher_ ? watcher_->descriptor() : -1; }

 private:
  enum class State : std::uint8_t { greeting, following, requests, reading, gathering, writing, copying, watching };
  /// The result of a step; `on`: the next step may follow.
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
  Step read_small_piece(std::size_t bytes);
  [[nodiscard]] bool is_end_of_file() const;
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
  std::optional<ClientProcesses::Member> member_;  ///< before `handles_`, so that it ends after those are closed
  Handles handles_;
  Calls calls_;
  State state_ = State::greeting;
  std::size_t turn_ = 0;  ///< bytes left in this turn
  bool crowded_ = false;

  // Input: a header, then its names.
  std::array<std::byte, sizeof(layout::FileRequest) + 2 * std::size_t{layout::kFileMaxName}> in_;
  std::size_t have_ = 0;
  std::size_t need_ = sizeof(layout::FileHello);
  Request request_;

  // Output.
  std::vector<std::byte> out_;
  std::size_t sent_ = 0;

  // The read, write, append or copy in progress.
  Backing* backing_ = nullptr;  ///< of an open file; no other request runs meanwhile
  bool appends_ = false;        ///< of a write: its file was opened with O_APPEND
  std::shared_ptr<Grant> by_;   ///< of a write: the ticket that opened its file
  Backing* target_ = nullptr;   ///< of a copy
  std::uint64_t offset_ = 0;
  std::uint64_t target_offset_ = 0;
  std::uint64_t left_ = 0;      ///< bytes to come
  std::uint64_t moved_ = 0;     ///< bytes already in the file
  int error_ = 0;               ///< of a write: the remaining data is dropped
  std::uint64_t position_ = 0;  ///< of the write's answer
  std::optional<Delegations::Client> watcher_;
  std::vector<std::byte> gathered_;  ///< data to be used at once; of a write: the last, incomplete page
};

}  // namespace wherry::file
