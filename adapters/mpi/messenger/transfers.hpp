// SPDX-License-Identifier: Apache-2.0
// Long payloads at the receiving side (rendezvous). The receiver reads them from the sender's memory, or, if its
// section for that peer is large, asks for them: then both sides copy at the same time, in user space. The receiver
// does not wait for a busy sender: it reads late bytes itself, from the end backwards. A chunk that arrives after that
// is dropped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <wherry/mailbox.hpp>

#include "lanes.hpp"
#include "link.hpp"
#include "link_table.hpp"
#include "list.hpp"
#include "outbox.hpp"
#include "pool.hpp"

namespace wherry::mpi {

/// Is called when a transfer ends.
class TransferOwner {
 public:
  /// The transfer is over. `error` is 0 or an errno value.
  virtual void transferred(std::uint64_t subject, int error) = 0;

 protected:
  ~TransferOwner() = default;
};

/// An announced payload on its way into this process's memory.
struct Transfer : Hook, Pooled {
  Link* from;
  Buffers into;
  std::uint64_t goal;     ///< bytes to transfer
  std::uint64_t arrived;  ///< bytes that are here, from the front on
  std::uint64_t pulled;   ///< bytes that were read at the end, while the front was streamed
  std::uint64_t offer;    ///< the sender's number for it
  bool streams;           ///< the sender was asked for it
  std::array<RemotePiece, kMostRemotePieces> remote;
  std::uint16_t remote_pieces;
  TransferOwner* owner;
  std::uint64_t subject;  ///< the owner's number of the transfer

  void reset() {
    arrived = pulled = 0;
    streams = false;
  }
  [[nodiscard]] std::uint64_t left() const { return goal - arrived - pulled; }
};

class Transfers final : public PayloadSink {
 public:
  Transfers(Mailbox& mailbox, LinkTable& links, Outbox& outbox)
      : mailbox_(mailbox), links_(links), outbox_(outbox), lanes_(mailbox) {}

  struct Source {
    Link* link;
    std::uint64_t offer;
    std::array<RemotePiece, kMostRemotePieces> pieces;
    std::uint16_t piece_count;
    bool may_stream = true;  ///< allows streaming even if the payload could be read
  };
  /// Transfers `goal` bytes into `into`, which has room for them. May call the owner before it returns.
  void start(const Source& source, const Buffers& into, std::uint64_t goal, TransferOwner& owner,
             std::uint64_t subject);
  /// Ends the transfers for `subject` of `owner`.
  void cancel(const TransferOwner& owner, std::uint64_t subject, int error);

  void on_stream(Inflow& inflow);
  void progressed(Inflow& inflow) override;
  void arrived(Inflow& inflow) override { inflow.drop_rest(); }
  void lost(Inflow& /*inflow*/) override {}

  /// Whether this side has nothing to read, neither now nor if a sender stalls.
  [[nodiscard]] bool is_idle() const { return pulls_.empty() && streams_.empty(); }
  /// Reads from senders' memory, up to 8 MiB. Returns true if there was something to read.
  bool pull() noexcept;
  /// Reads bytes that a sender was asked for and has not sent in time. Returns true if there was such a sender.
  bool pull_stalled() noexcept;
  void close_idle_lanes() noexcept { lanes_.close_idle(); }
  void close_lane(Link& link) noexcept { lanes_.close(link); }
  void lose(Link& link, int error);
  [[nodiscard]] std::size_t size() const { return transfers_.taken(); }

 private:
  bool prefers_stream(Link& from, std::uint64_t bytes);
  void want(Transfer& transfer);
  bool pull(Transfer& transfer);
  bool pull_from_back(Transfer& transfer);
  bool read(Transfer& transfer, std::uint64_t offset, std::uint64_t bytes) noexcept;
  void end(Transfer& transfer, int error);

  Mailbox& mailbox_;
  LinkTable& links_;
  Outbox& outbox_;
  Lanes lanes_;
  Pool<Transfer> transfers_;
  List<Transfer> pulls_;    ///< transfers that this side reads from the sender's memory
  List<Transfer> streams_;  ///< transfers that the sender streams, and that this side could read as well
};

}  // namespace wherry::mpi
