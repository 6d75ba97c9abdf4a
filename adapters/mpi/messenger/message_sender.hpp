// SPDX-License-Identifier: Apache-2.0
// Sends messages. Short ones are written into the receiver's mailbox at once (eager); longer ones are announced.
#pragma once

#include <cstddef>
#include <cstdint>

#include <wherry/mailbox.hpp>

#include "completion.hpp"
#include "link.hpp"
#include "link_table.hpp"
#include "message_receiver.hpp"
#include "offers.hpp"
#include "outbox.hpp"
#include "requests.hpp"

namespace wherry::mpi {

class MessageSender {
 public:
  /// @param most_eager  bytes of the longest payload that is sent before its receiver asks for it
  MessageSender(Mailbox& mailbox, LinkTable& links, Outbox& outbox, Offers& offers, MessageReceiver& receiver,
                Reporter& reporter, std::size_t most_eager)
      : mailbox_(mailbox),
        links_(links),
        outbox_(outbox),
        offers_(offers),
        receiver_(receiver),
        reporter_(reporter),
        most_eager_(most_eager) {}

  /// Fast path: sends a short message if there is room at once. False if it cannot: nothing was done.
  bool send_short(const SendRequest& request) noexcept;
  /// Sends over a connected link. Returns 0, or -FI_EAGAIN if an injected message would have to wait.
  int send(const SendRequest& request);
  void send_to_self(const SendRequest& request);
  /// Makes all messages to the peer announcements, including eager ones that wait for room.
  void on_stop_eager(Link& link);
  static void on_resume_eager(Link& link) { link.announces_all = false; }

 private:
  int send_eager(const SendRequest& request);
  int announce(const SendRequest& request);
  void queue(Link& link, const Wire& wire, const Buffers& payload, Offer* offer, const Completion* completion);
  bool is_to_be_announced(const Link& link, std::uint64_t bytes) noexcept;
  void report(const SendRequest& request, int error);

  Mailbox& mailbox_;
  LinkTable& links_;
  Outbox& outbox_;
  Offers& offers_;
  MessageReceiver& receiver_;
  Reporter& reporter_;
  const std::size_t most_eager_;
};

}  // namespace wherry::mpi
