// SPDX-License-Identifier: Apache-2.0
// Messages and one-sided operations between endpoints, over mailboxes. Short messages are copied through the receiver's
// mailbox; long ones stay with their sender until they are matched. Uses libfabric's flags and error numbers, but none
// of its objects.
//
// Its parts, each built on those before it:
//  - Outbox and LinkTable: packets to peers;
//  - Limits: what peers make this process hold;
//  - Offers and Transfers: long payloads, at the sending and at the receiving side;
//  - MessageReceiver and MessageSender;
//  - Target and Initiator: one-sided operations;
//  - Inbox and Losses: packets from peers, and peers that are gone.
//
// Ownership: a request's buffers must stay valid until its completion is reported; links live as long as the messenger.
// Threads: one at a time; interrupt() and declare() from any. Only wait() and drain() sleep. Calls return 0 or a
// negative FI_E value: -FI_EAGAIN is back-pressure, and passes with progress().
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <wherry/mailbox.hpp>

#include "completion.hpp"
#include "inbox.hpp"
#include "initiator.hpp"
#include "limits.hpp"
#include "link.hpp"
#include "link_table.hpp"
#include "losses.hpp"
#include "message_receiver.hpp"
#include "message_sender.hpp"
#include "name.hpp"
#include "neighbours.hpp"
#include "offers.hpp"
#include "outbox.hpp"
#include "processors.hpp"
#include "regions.hpp"
#include "remote.hpp"
#include "requests.hpp"
#include "roles.hpp"
#include "target.hpp"
#include "transfers.hpp"

namespace wherry::mpi {

/// Mailbox overflow: bytes that a peer may send while this endpoint does nothing. Room for 64 messages, 256 KiB of
/// payload, and what surrounds them.
inline constexpr std::size_t kOverflow = 320 << 10;

class Messenger {
 public:
  /// Throws Error.
  /// @param processors  number of processors that the linked endpoints may run on; with fewer than endpoints, the two
  ///   sides of a transfer do not copy at the same time
  /// @param most_eager  bytes of the longest payload that is sent before its receiver asks for it, up to kMostInjected
  Messenger(Reporter& reporter, const MailboxOptions& options, std::size_t processors = job_processors(),
            std::size_t most_eager = kMostInjected);
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;
  ~Messenger() = default;

  [[nodiscard]] const Name& name() const { return links_.name(); }
  [[nodiscard]] bool is_oversubscribed() const { return links_.is_oversubscribed(); }
  [[nodiscard]] bool is_crowded() const { return links_.is_crowded(); }
  /// The link to the endpoint of this name, connected or not.
  Link& link_to(const Name& name) { return links_.link_to(name); }
  /// Connects if necessary. Returns 0 or a negative FI_E value, such as -FI_ECONNREFUSED.
  int connect(Link& link) { return links_.connect(link); }

  int send(const SendRequest& request);
  int receive(const ReceiveRequest& request);
  /// fi_trecvmsg with FI_PEEK, FI_CLAIM and FI_DISCARD.
  int peek(const ReceiveRequest& request, bool claims, bool discards);
  int receive_claimed(const ReceiveRequest& request) { return receiver_.receive_claimed(request); }
  int discard_claimed(const ReceiveRequest& request) { return receiver_.discard_claimed(request); }
  /// Returns -FI_ENOENT if no receive with this context waits for a message.
  int cancel(void* context) { return receiver_.cancel(context); }
  void set_least_room(std::size_t bytes) { receiver_.least_room = bytes; }
  [[nodiscard]] std::size_t least_room() const { return receiver_.least_room; }

  /// Starts a one-sided operation. It completes when the target answers.
  int access(const RemoteRequest& request);
  /// Lets peers access these regions, which must outlive the messenger.
  void serve(const Regions& regions, Access access) { target_.serve(regions, access); }
  /// To be called before the region ends: afterwards no peer's operation touches its memory. Throws std::bad_alloc.
  void revoke(const Region& region) { target_.revoke(region); }

  /// Sends, receives and transfers what it can without waiting. Returns true if anything moved.
  bool progress() noexcept;
  /// Whether the program can be waiting for a message: something is under way that only a peer can end, or, since the
  /// last call, a peek found nothing or a send got -FI_EAGAIN. If false, the program may wait for a word in memory that
  /// nothing announces, as Open MPI does for the locks of its windows.
  [[nodiscard]] bool awaits_message();
  /// Whether progress() may find a message, after it has moved nothing: as Mailbox::has_news.
  [[nodiscard]] bool has_news() noexcept { return mailbox_.has_news(); }
  /// Sleeps until progress() has something to do. Returns false on timeout. `looks`: polls for a while before it
  /// sleeps.
  bool wait(Timeout timeout, bool looks = true) noexcept;
  /// Calls progress(). Returns true if nothing is left to do; the descriptor becomes readable when there is.
  bool may_sleep() noexcept;
  void interrupt() noexcept { mailbox_.interrupt(); }
  int descriptor() { return mailbox_.descriptor(); }
  /// Sends what is queued and waits for answers, for at most 5 s, or 500 ms in which nothing moves.
  void drain() noexcept;

  /// Sets the endpoints that send to this one, as the program declares them. One of the next progress() makes them the
  /// mailbox's neighbours. From any thread.
  void declare(std::vector<NeighbourName> neighbours) { neighbours_.declare(std::move(neighbours)); }

  Mailbox& mailbox() { return mailbox_; }

 private:
  int send_long(const SendRequest& request);
  int admit(Link& link, bool injects);
  bool is_congested(const Link& link, bool injects) const;
  void look() noexcept;
  /// Requests and answers that only peers can end.
  [[nodiscard]] std::size_t outgoing() const { return outbox_.size() + offers_.size() + initiator_.size(); }

  const Layout layout_;
  Mailbox mailbox_;
  Outbox outbox_;
  LinkTable links_;
  Limits limits_;
  Offers offers_;
  Transfers transfers_;
  MessageReceiver receiver_;
  MessageSender sender_;
  Target target_;
  Initiator initiator_;
  const Roles roles_{links_, outbox_, offers_, transfers_, receiver_, sender_, initiator_, target_};
  Losses losses_{mailbox_, roles_};
  Inbox inbox_{mailbox_, roles_, losses_};
  Neighbours neighbours_{mailbox_, links_, layout_};
  bool peeked_ = false;   ///< a peek found nothing since awaits_message()
  bool refused_ = false;  ///< a send got -FI_EAGAIN since awaits_message()
  std::uint32_t rounds_ = 0;
  std::uint32_t requests_ = 0;  ///< requests to peers since the last progress()
};

}  // namespace wherry::mpi
