// SPDX-License-Identifier: Apache-2.0
// Receives, and the delivery of messages to them. Eager payloads are copied from the mailbox into the application's
// buffer; announced ones are transferred there from the sender's memory.
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
  /// fi_trecvmsg with FI_PEEK, FI_CLAIM and FI_DISCARD. Returns false if no message was found.
  bool peek(const ReceiveRequest& request, bool claims, bool discards);
  /// Returns -FI_EINVAL if no message was claimed with this context.
  int receive_claimed(const ReceiveRequest& request);
  int discard_claimed(const ReceiveRequest& request);
  /// Returns -FI_ENOENT if no receive with this context waits for a message.
  int cancel(void* context);

  /// Delivers a short message that has arrived whole. False if no receive is posted for it: nothing was done.
  bool take_short(Link& from, PacketHead& head, std::span<const std::byte> payload);
  void on_short_eager(Inflow& inflow);
  void on_eager(Inflow& inflow);
  void on_announce(Inflow& inflow);
  /// Delivers a message of this endpoint to itself. If no receive is posted for it: `copies` copies its payload, and
  /// `delivery` defers its completion until it is received.
  void on_own(Link& self, const Envelope& envelope, Offer& offer, bool copies, bool delivery);

  void arrived(Inflow& inflow) override { transferred(inflow.subject, 0); }
  void lost(Inflow& inflow) override;
  void transferred(std::uint64_t subject, int error) override;

  /// Fails what waits for this peer: its announced messages and, if it died (`error` is not 0), receives that name it
  /// as the source. A peer that closed in order had nothing more to send.
  void lose(const Link& link, int error);
  /// Drops the unclaimed messages of a peer that violated the protocol. Otherwise it could fill the memory by
  /// connecting again under other names.
  void drop_all_of(const Link& link);
  void end_round() { unexpected_.end_round(); }
  [[nodiscard]] std::size_t size() const { return receives_.taken() + deliveries_.taken(); }

  std::size_t least_room = 64;  ///< a multi-receive with less room is complete (FI_OPT_MIN_MULTI_RECV)

 private:
  /// A message on its way into the buffer that it was matched with.
  struct Delivery {
    Link* from = nullptr;
    Envelope envelope;
    Buffers into;
    void* context = nullptr;
    Receive* whole = nullptr;  ///< the multi-receive whose buffer `into` is a part of, or null
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
