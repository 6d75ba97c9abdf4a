// SPDX-License-Identifier: Apache-2.0
// What peers may make this process hold. Beyond 64 MiB of unexpected messages it tells each peer that adds to them to
// announce its messages instead (`press`). A peer that keeps the rules then adds only what is on its way: what its
// section holds, and what it sends before it looks. It looks after kRequestsPerLook requests at the latest. A peer that
// adds more than that is closed, and what it has sent is dropped: other peers go on.
#include <rdma/fi_errno.h>

#include <string>

#include "base/log.hpp"
#include "messenger.hpp"

namespace wherry::mpi {
namespace {

// Bytes of messages that nothing was posted for: senders keep theirs beyond the first, until it has shrunk to the
// second.
constexpr std::uint64_t kPress = 64 << 20;
constexpr std::uint64_t kRelieve = 32 << 20;
// What a peer may add after `press`: this, and what its section holds. The shortest packet takes 40 bytes there, and
// kOverrunPerByte times as much here.
constexpr std::uint64_t kMostOverrun = 64 << 20;
constexpr std::uint64_t kOverrunPerByte = 8;
static_assert(sizeof(Unexpected) <= kOverrunPerByte * 40);
// Rounds of progress() in one look, each of which may take 64 packets.
constexpr int kRoundsPerLook = 64;

std::string description_of(const Link& link) {
  const std::string name = link.name.text();
  return link.address == kAnySource ? name : name + " (address " + std::to_string(link.address) + " here)";
}

std::string breach_of(int error) {
  return error == FI_ENOBUFS ? "it makes this process hold more than a peer may: it goes on sending messages that no "
                               "receive was posted for although it was told to stop, or takes no answers"
                             : "it sent a packet that the protocol does not allow";
}

}  // namespace

Unexpected& Messenger::keep(Inflow& inflow, const Envelope& envelope) {
  Unexpected& message = unexpected_.take();
  message.from = inflow.link;
  message.envelope = envelope;
  message.wants_reply = (inflow.packet.flags & kWantsReply) != 0;
  message.peer_request = inflow.packet.request;
  message.round = rounds_;
  matching_.keep(message);
  if (inflow.packet.operation != Operation::eager) return message;
  if (envelope.bytes > 0) message.payload = std::make_unique_for_overwrite<std::byte[]>(envelope.bytes);
  message.inflow = &inflow;
  inflow.unexpected = &message;
  inflow.into = Buffers(message.payload.get(), envelope.bytes);
  buffered_ += kept_bytes(message);
  if (inflow.link->presses) inflow.link->overrun += kept_bytes(message);
  if (buffered_ > kPress) press(*inflow.link);
  return message;
}

void Messenger::press(Link& link) {
  if (link.presses) return;
  link.presses = presses_ = true;
  link.overrun = 0;
  tell(link);
}

// So much less is kept.
void Messenger::settle(std::uint64_t bytes) {
  buffered_ -= bytes;
  if (!presses_ || buffered_ > kRelieve) return;
  presses_ = false;
  for (auto& [name, link] : links_) {
    link->presses = false;
    if (link->error == 0) tell(*link);
  }
}

// Now, or once there is room: then the state at that time, ahead of packets that have not begun.
void Messenger::tell(Link& link) {
  if (link.peer != Mailbox::kNoPeer && !tell_pressure(link) && !link.is_linked()) busy_.push_back(link);
}

// False: there is no room yet.
bool Messenger::tell_pressure(Link& link) noexcept {
  if (link.told == link.presses) return true;
  if (const Send* first = link.queue.front(); first != nullptr && first->outgoing.taken > 0) return false;
  PacketHead head{};
  head.operation = link.presses ? Operation::press : Operation::relieve;
  if (!mailbox_.try_send(link.peer, std::as_bytes(std::span(&head, 1))).ok()) return false;
  link.told = link.presses;
  return true;
}

// The peer has asked for announcements: what waits for room to go unasked becomes one.
void Messenger::announce_queued(Link& link) {
  link.queue.for_each([&](Send& send) {
    if (send.wire.head.operation == Operation::eager && send.outgoing.taken == 0) announce(send, false);
  });
}

bool Messenger::overruns(const Link& link) const noexcept {
  return link.presses && link.overrun > kMostOverrun &&
         link.overrun > kMostOverrun + kOverrunPerByte * mailbox_.section(link.peer).incoming;
}

// The peer of `inflow`, which ends with this, has broken the rules.
void Messenger::break_with(Inflow& inflow) noexcept {
  const int error = inflow.error;
  Link* const link = inflow.link;
  const Mailbox::Peer peer = inflow.peer;
  if (link != nullptr) {
    log::write(log::Level::error, "closed the connection to " + description_of(*link) + ": " + breach_of(error) +
                                      "; check that process, and that all processes load the same provider");
  }
  mailbox_.forget(peer);
  lose(peer, error);
  if (error == FI_ENOBUFS) drop_all_of(*link);
}

// Otherwise a peer that comes back under other names could fill the memory. What the application has claimed stays.
void Messenger::drop_all_of(const Link& link) {
  matching_.for_each_unexpected([&](Unexpected& message) {
    if (message.from != &link || message.own != nullptr || message.claimed != nullptr) return;
    message.unlink();
    drop(message);
  });
}

// What peers have sent so far, unless that is very much.
void Messenger::look() noexcept {
  for (int i = 0; i < kRoundsPerLook && progress(); ++i) continue;
}

}  // namespace wherry::mpi
