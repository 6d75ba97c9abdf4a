// SPDX-License-Identifier: Apache-2.0
// Messages between endpoints over mailboxes: short ones are copied through the receiver's mailbox, long ones stay with
// their sender until they are matched and are then read out of its memory by the receiver. Knows libfabric's flags and
// error numbers, none of its objects.
//
// Ownership: the application's buffers are its own until their completion was reported; links live as long as the
// messenger. Threads: one at a time; interrupt() from any. Only wait() and close() sleep. Calls return 0 or a negative
// FI_E value: -FI_EAGAIN is back-pressure, and passes with progress().
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <wherry/mailbox.hpp>

#include "completion.hpp"
#include "matching.hpp"
#include "name.hpp"
#include "processors.hpp"
#include "regions.hpp"
#include "remote.hpp"
#include "send.hpp"

namespace wherry::mpi {

/// The way to one other endpoint, or to this one.
struct Link : Hook {
  Name name;
  bool self = false;
  std::uint64_t address = kAnySource;  ///< what the application calls it
  Mailbox::Peer peer = Mailbox::kNoPeer;
  List<Send> queue;  ///< packets that wait for room
  std::size_t queued = 0;
  std::uint64_t kept = 0;  ///< the sum of its sends'
  bool pressed = false;    ///< the peer wants announcements only
  bool presses = false;    ///< so do we of it
  bool told = false;       ///< what the peer was last told of `presses`
  int error = 0;           ///< the connection is lost: an errno value

  // What the peer makes this process hold: messenger_bounds.cc.
  std::uint64_t overrun = 0;  ///< bytes of its unexpected messages that came unannounced since `presses`
  std::size_t held = 0;       ///< its announcements that nothing was posted for, and its writes under way

  // Long messages from the peer: messenger_stream.cc.
  std::uint64_t heard = 0;       ///< arch::ticks when it last announced one, or streamed
  std::uint32_t penalty = 0;     ///< messages that are read without asking it to stream, after the last stall
  std::uint32_t to_be_read = 0;  ///< of them, still to come
  std::uint64_t announced = 0;   ///< bytes since it was idle, or was refused a lane
  bool has_lane = false;
};

/// A packet that arrives from one peer of the mailbox.
struct Inflow {
  Mailbox::Peer peer = Mailbox::kNoPeer;
  Link* link = nullptr;  ///< null until its hello
  std::array<std::byte, sizeof(Send::Wire)> head;
  std::size_t head_bytes = 0;
  std::size_t head_wanted = kBriefHead;
  std::uint64_t message_bytes = 0;
  PacketHead packet{};
  Buffers into;  ///< where the payload goes; what finds no place is dropped
  std::uint64_t arrived = 0;
  Receive* receive = nullptr;
  Unexpected* unexpected = nullptr;
  Send* answered = nullptr;               ///< the request that the payload is for
  std::unique_ptr<std::byte[]> operands;  ///< of an atomic, until all of them are there
  int error = 0;                          ///< the peer breaks the rules
};

/// An endpoint that sends to this one, and its share.
struct NeighbourName {
  Name name;
  std::uint32_t weight = 1;
};

struct SendRequest {
  Link* to = nullptr;
  Buffers buffers;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  void* context = nullptr;
  bool tagged = false;
  bool has_data = false;
  bool wanted = true;
  bool reported = true;   ///< wanted, or counted: otherwise only its failure is told of
  bool inject = false;    ///< the buffers are the caller's again at once; at most kMostInjected bytes
  bool delivery = false;  ///< complete when the receiver has it
  bool transmit = false;  ///< complete no sooner than the payload has left this process
};

struct ReceiveRequest {
  Buffers buffers;
  std::uint64_t source = kAnySource;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  void* context = nullptr;
  bool tagged = false;
  bool wanted = true;
  bool several = false;  ///< messages one behind the other until less than the least room is left
};

inline constexpr std::size_t kMostInjected = 16 << 10;
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
  ~Messenger();

  [[nodiscard]] const Name& name() const { return name_; }
  /// More endpoints than processors: the application has named so many, this one with them.
  [[nodiscard]] bool is_oversubscribed() const { return links_.size() > processors_; }
  /// At least two for each.
  [[nodiscard]] bool is_crowded() const { return links_.size() >= 2 * processors_; }
  /// The link to the endpoint of this name, connected or not.
  Link& link_to(const Name& name);
  /// What the application calls it from now on; kAnySource: nothing.
  void call(Link& link, std::uint64_t address);

  int send(const SendRequest& request);
  int receive(const ReceiveRequest& request);
  /// fi_trecvmsg with FI_PEEK, FI_CLAIM and FI_DISCARD.
  int peek(const ReceiveRequest& request, bool claims, bool discards);
  int receive_claimed(const ReceiveRequest& request);
  int discard_claimed(const ReceiveRequest& request);
  /// -FI_ENOENT: no receive with this context waits for a message.
  int cancel(void* context);
  void set_least_room(std::size_t bytes) { least_room_ = bytes; }
  [[nodiscard]] std::size_t least_room() const { return least_room_; }

  /// A one-sided operation. Its completion comes with the target's answer.
  int access(const RemoteRequest& request);
  /// From now on peers may access these regions. They outlive the messenger.
  void serve(const Regions& regions, Access access);
  /// The region is about to end: no peer's operation touches its memory after this. Throws std::bad_alloc.
  void revoke(const Region& region);

  /// Moves what can be moved. True if anything was.
  bool progress() noexcept;
  /// Something is under way that only a peer can end, or a peek or a send was in vain since the last call. Otherwise
  /// the program may wait for a word in memory that nothing announces, as Open MPI does for the locks of its windows.
  [[nodiscard]] bool awaits_message() {
    const bool refused = std::exchange(refused_, false);
    return sends_.taken() + receives_.taken() > 0 || std::exchange(peeked_, false) || refused;
  }
  /// Sleeps until progress() has something to do. False: the time is over. `looks`: for a while before it sleeps.
  bool wait(Timeout timeout, bool looks = true) noexcept;
  /// Moves what can be moved. True: nothing is left to do, and the descriptor will say when there is.
  bool may_sleep() noexcept;
  void interrupt() noexcept { mailbox_.interrupt(); }
  int descriptor() { return mailbox_.descriptor(); }
  /// Sends what is queued and waits for answers, but not for longer than a few seconds.
  void drain() noexcept;

  /// Those that send to this endpoint, as the program declares them: they become the mailbox's neighbours with the next
  /// progress(). From any thread.
  void declare(std::vector<NeighbourName> neighbours);

  Mailbox& mailbox() { return mailbox_; }
  /// Connects if need be. -FI_ECONNREFUSED ...
  int connect(Link& link);

 private:
  // messenger_send.cc
  int send_to_self(const SendRequest& request);
  Send& new_send(const SendRequest& request);
  bool is_congested(const Link& link, bool injects) const;
  bool send_at_once(const SendRequest& request) noexcept;
  bool is_to_be_announced(const Link& link, std::uint64_t bytes) noexcept;
  void announce(Send& send, bool transmit);
  void start(Send& send);
  enum class Push : std::uint8_t { whole, blocked, lost };
  Push push(Send& send) noexcept;
  void was_pushed(Send& send);
  void complete(Send& send, int error);
  void report(const Send& send, int error);
  bool flush() noexcept;
  bool flush(Link& link) noexcept;
  void control(Link& link, Operation operation, std::uint64_t request, std::uint64_t data);
  void say_hello(Link& link);

  int make_way(Link& link, bool injects);
  bool is_blocked(Link& link) noexcept;
  int inject(Send& send);
  void forget(Send& send);
  void note_injection(Send& send);

  // messenger_remote.cc
  int access_self(const RemoteRequest& request);
  Send& new_remote(const RemoteRequest& request);
  Send* answered(const Inflow& inflow);
  void on_reply(Inflow& inflow);
  void on_grant(Inflow& inflow);
  void finish_read(Receive& receive, int error);

  // messenger_target.cc
  [[nodiscard]] Regions::Found find(std::span<const RemoteRange> ranges, const PacketHead& packet) const;
  bool find_targets(Inflow& inflow, Regions::Found& found) const;
  void note_access(const PacketHead& packet, const Link* from, const std::array<Region*, kMostRemoteRanges>& regions);
  Receive& new_target(const Inflow& inflow, const Regions::Found& found);
  Send& new_answer(const Inflow& inflow, Operation operation);
  void on_write(Inflow& inflow);
  void on_announce_write(Inflow& inflow);
  void on_read(Inflow& inflow);
  void on_atomic(Inflow& inflow);
  void carry_out(Inflow& inflow);
  void finish_write(Receive& receive, int error);
  void revoke(Receive& receive);

  // messenger_receive.cc
  Receive& new_receive(const ReceiveRequest& request);
  Receive& bind(Receive& posted, const Envelope& envelope);
  void accept(Receive& receive, Unexpected& message);
  void finish(Receive& receive, int error);
  void start_pull(Receive& receive);
  bool pull() noexcept;
  bool pull(Receive& receive);
  bool read_from_sender(Receive& receive, std::uint64_t offset, std::uint64_t bytes);
  void drop(Unexpected& message);
  void discard(Unexpected& message);
  void take_from_self(Receive& receive, Unexpected& message);

  // messenger_arrive.cc
  bool take_pieces() noexcept;
  bool take_brief(Inflow& inflow, const Mailbox::Piece& piece) noexcept;
  bool take_done(Inflow& inflow, const Mailbox::Piece& piece) noexcept;
  void take(Inflow& inflow, const Mailbox::Piece& piece) noexcept;
  void feed(Inflow& inflow, std::span<const std::byte> bytes);
  void begin(Inflow& inflow);
  void end(Inflow& inflow);
  void on_hello(Inflow& inflow);
  void on_brief(Inflow& inflow);
  void on_eager(Inflow& inflow);
  void on_announce(Inflow& inflow);
  void on_want(Inflow& inflow);
  void on_stream(Inflow& inflow);
  void on_done(Inflow& inflow);
  void read_head(Inflow& inflow);
  static bool read_table(const Inflow& inflow, std::array<RemotePiece, kMostRemotePieces>& table, std::uint16_t& count);
  Inflow& inflow_of(Mailbox::Peer peer);

  // messenger_bounds.cc
  Unexpected& keep(Inflow& inflow, const Envelope& envelope);
  void settle(std::uint64_t bytes);
  void press(Link& link);
  void tell(Link& link);
  bool tell_pressure(Link& link) noexcept;
  void announce_queued(Link& link);
  [[nodiscard]] bool overruns(const Link& link) const noexcept;
  void break_with(Inflow& inflow) noexcept;
  void drop_all_of(const Link& link);
  void look() noexcept;

  // messenger_stream.cc
  bool prefers_stream(Link& from, std::uint64_t bytes);
  void want(Receive& receive, std::uint64_t goal);
  void consider_lane(Link& link, std::uint64_t bytes);
  void close_idle_lanes() noexcept;
  void close_lane(Link& link) noexcept;
  void push_chunk(Send& send);
  void end_stream(Send& send, int error);
  void streamed(Inflow& inflow);
  bool end_stalled_streams() noexcept;
  bool pull_from_back(Receive& receive);
  void detach(Receive& receive);

  // messenger_loss.cc
  bool take_losses() noexcept;
  void lose(Mailbox::Peer peer, int error);
  void lose_sends(Link& link, int error);
  void lose_receives(Link& link, int error);

  // messenger_neighbours.cc
  void apply_declared();

  Reporter& reporter_;
  const Layout layout_;
  Mailbox mailbox_;
  Name name_;
  std::map<std::string, std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<Inflow>> inflows_;  ///< by the mailbox's number
  Matching matching_;
  Pool<Send> sends_;
  Pool<Receive> receives_;
  Pool<Unexpected> unexpected_;
  List<Link> busy_;           ///< links with packets that wait for room
  List<Receive> pulls_;       ///< receives whose payload is being read from its sender
  List<Receive> streams_;     ///< whose payload its sender streams, and that could be read from it as well
  std::vector<Link*> lanes_;  ///< whose section in this mailbox has a lane
  const std::size_t processors_;
  const Regions* regions_ = nullptr;
  Access served_;
  std::size_t least_room_ = 64;
  const std::size_t most_eager_;
  std::uint64_t buffered_ = 0;  ///< bytes of messages that nothing was posted for
  std::size_t injections_ = 0;  ///< injected messages on their way to others
  bool presses_ = false;
  bool peeked_ = false;   ///< in vain, since awaits_message()
  bool refused_ = false;  ///< a message, by -FI_EAGAIN, since awaits_message()
  std::uint32_t rounds_ = 0;
  std::uint32_t requests_ = 0;  ///< to peers since the last look at what they have sent
  std::mutex declared_mutex_;
  std::vector<NeighbourName> declared_;
  std::atomic<bool> declared_changed_{false};
};

}  // namespace wherry::mpi
