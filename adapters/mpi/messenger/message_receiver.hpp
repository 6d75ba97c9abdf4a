// SPDX-License-Identifier: Apache-2.0
// Receives, and the messages that they get: copied out of the mailbox straight into the application's buffer, or
// transferred there from their sender's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "completion.hpp"
#include "limits.hpp"
#include "link.hpp"
#include "matching.hpp"
#include "offers.hpp"
#include "outbox.hpp"
#include "pool.hpp"
#include "requests.hpp"
#include "transfers.hpp"
#include "unexpected_messages.hpp"

namespace wherry::mpi {

class MessageReceiver final : public PayloadSink, public TransferOwner {
 public:
  MessageReceiver(Outbox& outbox, Offers& offers, Transfers& transfers, Limits& limits, Reporter& reporter)
      : outbox_(outbox),
        offers_(offers),
        transfers_(transfers),
        limits_(limits),
        reporter_(reporter),
        unexpected_(limits) {}

  void receive(const ReceiveRequest& request);
  /// fi_trecvmsg with FI_PEEK, FI_CLAIM and FI_DISCARD. False: no message was found.
  bool peek(const ReceiveRequest& request, bool claims, bool discards);
  /// -FI_EINVAL: no message was claimed with this context.
  int receive_claimed(const ReceiveRequest& request);
  int discard_claimed(const ReceiveRequest& request);
  /// -FI_ENOENT: no receive with this context waits for a message.
  int cancel(void* context);

  /// A short message that is there as a whole. False: nothing was posted for it, and nothing was done.
  bool take_short(Link& from, PacketHead& head, std::span<const std::byte> payload);
  void on_short_eager(Inflow& inflow);
  void on_eager(Inflow& inflow);
  void on_announce(Inflow& inflow);
  /// A message of this endpoint to itself.
  void on_own(Link& self, const Envelope& envelope, Offer& offer, bool copies, bool delivery);

  void arrived(Inflow& inflow) override { transferred(inflow.subject, 0); }
  void lost(Inflow& inflow) override;
  void transferred(std::uint64_t subject, int error) override;

  /// Receives that only this peer could satisfy fail if it died; of one that ended in order nothing more was to come.
  void lose(const Link& link, int error);
  /// Drops what a peer that broke the rules has sent, which under other names could fill the memory.
  void drop_all_of(const Link& link);
  void end_round() { unexpected_.end_round(); }
  [[nodiscard]] std::size_t size() const { return receives_.taken() + deliveries_.taken(); }

  std::size_t least_room = 64;  ///< of a receive that takes several messages

 private:
  /// A message on its way into the buffer that it was matched with.
  struct Delivery {
    Link* from = nullptr;
    Envelope envelope;
    Buffers into;
    void* context = nullptr;
    Receive* whole = nullptr;  ///< of which the buffer is a part
    bool wanted = true;
    bool wants_reply = false;  ///< the sender waits for `done`
    std::uint64_t peer_request = 0;
  };
  struct PendingDelivery : Pooled {
    Delivery delivery;
    void reset() {}
  };

  Receive& post(const ReceiveRequest& request);
  static Delivery delivery_of(const ReceiveRequest& request);
  Delivery bind(Receive& posted, const Envelope& envelope, Link& from);
  std::uint64_t park(const Delivery& delivery);
  void accept(Delivery&& delivery, Unexpected& message);
  void take_from_self(const Delivery& delivery, Unexpected& message);
  std::uint64_t park_transfer(Delivery& delivery);
  void transfer(const Delivery& delivery, const Transfers::Source& source, std::uint64_t parked);
  void finish(const Delivery& delivery, int error);
  void fail(Receive& posted, std::uint64_t source, int error);
  void discard(Unexpected& message);

  Outbox& outbox_;
  Offers& offers_;
  Transfers& transfers_;
  Limits& limits_;
  Reporter& reporter_;
  Matching matching_;
  UnexpectedMessages unexpected_;
  Pool<Receive> receives_;
  Pool<PendingDelivery> deliveries_;
};

}  // namespace wherry::mpi
