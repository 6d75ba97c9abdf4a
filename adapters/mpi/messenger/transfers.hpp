// SPDX-License-Identifier: Apache-2.0
// Long payloads, at the side that gets them (rendezvous). The receiver reads them out of the sender's memory, or asks
// for them where its section for that peer is large: then both sides copy at the same time, in user space. It waits for
// no sender that does something else: what has not come in time it reads itself, from the end on. So a chunk may arrive
// that is no longer needed; it is dropped.
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

/// What a transfer is for.
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
  std::uint64_t goal;     ///< bytes that are to be had
  std::uint64_t arrived;  ///< of them, from the front on
  std::uint64_t pulled;   ///< at the end, of one that is streamed from the front
  std::uint64_t offer;    ///< the sender's number for it
  bool streams;           ///< the sender was asked for it
  std::array<RemotePiece, kMostRemotePieces> remote;
  std::uint16_t remote_pieces;
  TransferOwner* owner;
  std::uint64_t subject;  ///< in the owner's own count

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
    bool may_stream = true;  ///< even where it could be read
  };
  /// Reads `goal` bytes, which the buffers have room for. The owner may learn of the end at once.
  void start(const Source& source, const Buffers& into, std::uint64_t goal, TransferOwner& owner,
             std::uint64_t subject);
  /// Ends those for `subject` of `owner`.
  void cancel(const TransferOwner& owner, std::uint64_t subject, int error);

  void on_stream(Inflow& inflow);
  void progressed(Inflow& inflow) override;
  void arrived(Inflow& inflow) override { inflow.drop_rest(); }
  void lost(Inflow& /*inflow*/) override {}

  /// Nothing is to be read here: what is under way is streamed by peers that are in time.
  [[nodiscard]] bool is_idle() const { return pulls_.empty() && streams_.empty(); }
  /// Reads what is to be read. True if anything was.
  bool pull() noexcept;
  /// Reads what a sender that was asked has not sent in time. True if anything was.
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
  List<Transfer> pulls_;    ///< whose payload is being read from its sender
  List<Transfer> streams_;  ///< whose payload its sender streams, and that could be read from it as well
};

}  // namespace wherry::mpi
