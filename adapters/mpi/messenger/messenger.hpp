// SPDX-License-Identifier: Apache-2.0
// Messages and one-sided operations between endpoints, over mailboxes: short messages are copied through the receiver's
// mailbox, long ones stay with their sender until they are matched. Knows libfabric's flags and error numbers, none of
// its objects.
//
// Its parts, each over those before it: Outbox and LinkTable (packets to peers), Limits, Offers and Transfers (long
// payloads, at the side that has them and at the one that gets them), MessageReceiver and MessageSender, Target and
// Initiator (one-sided operations), Inbox and Losses (what comes from peers).
//
// Ownership: the application's buffers are its own until their completion was reported; links live as long as the
// messenger. Threads: one at a time; interrupt() and declare() from any. Only wait() and drain() sleep. Calls return 0
// or a negative FI_E value: -FI_EAGAIN is back-pressure, and passes with progress().
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

/// Bytes that an endpoint's peer may send while the endpoint does nothing: 64 messages, 256 KiB of payload, and as
/// much as goes around these.
inline constexpr std::size_t kOverflow = 320 << 10;

class Messenger {
 public:
  /// Throws Error.
  /// @param processors  that the endpoints linked to may run on: with fewer of them both sides do not copy at once
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
  /// Connects if need be. -FI_ECONNREFUSED ...
  int connect(Link& link) { return links_.connect(link); }

  int send(const SendRequest& request);
  int receive(const ReceiveRequest& request);
  /// fi_trecvmsg with FI_PEEK, FI_CLAIM and FI_DISCARD.
  int peek(const ReceiveRequest& request, bool claims, bool discards);
  int receive_claimed(const ReceiveRequest& request) { return receiver_.receive_claimed(request); }
  int discard_claimed(const ReceiveRequest& request) { return receiver_.discard_claimed(request); }
  /// -FI_ENOENT: no receive with this context waits for a message.
  int cancel(void* context) { return receiver_.cancel(context); }
  void set_least_room(std::size_t bytes) { receiver_.least_room = bytes; }
  [[nodiscard]] std::size_t least_room() const { return receiver_.least_room; }

  /// A one-sided operation. Its completion comes with the target's answer.
  int access(const RemoteRequest& request);
  /// From now on peers may access these regions. They outlive the messenger.
  void serve(const Regions& regions, Access access) { target_.serve(regions, access); }
  /// The region is about to end: no peer's operation touches its memory after this. Throws std::bad_alloc.
  void revoke(const Region& region) { target_.revoke(region); }

  /// Moves what can be moved. True if anything was.
  bool progress() noexcept;
  /// Something is under way that only a peer can end, or a peek found nothing or a send no room since the last call.
  /// Otherwise the program may wait for a word in memory that nothing announces, as Open MPI does for the locks of its
  /// windows.
  [[nodiscard]] bool awaits_message();
  /// Sleeps until progress() has something to do. False: the time is over. `looks`: for a while before it sleeps.
  bool wait(Timeout timeout, bool looks = true) noexcept;
  /// Moves what can be moved. True: nothing is left to do, and the descriptor will say when there is.
  bool may_sleep() noexcept;
  void interrupt() noexcept { mailbox_.interrupt(); }
  int descriptor() { return mailbox_.descriptor(); }
  /// Sends what is queued and waits for answers, but not for longer than a few seconds.
  void drain() noexcept;

  /// Those that send to this endpoint, as the program declares them: they become the mailbox's neighbours with one of
  /// the next progress(). From any thread.
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
  bool peeked_ = false;   ///< and found nothing, since awaits_message()
  bool refused_ = false;  ///< a message, by -FI_EAGAIN, since awaits_message()
  std::uint32_t rounds_ = 0;
  std::uint32_t requests_ = 0;  ///< to peers since the last look at what they have sent
};

}  // namespace wherry::mpi
