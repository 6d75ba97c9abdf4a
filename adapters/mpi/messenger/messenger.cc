// SPDX-License-Identifier: Apache-2.0
#include "messenger.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <chrono>

namespace wherry::mpi {
namespace {

// Rounds of progress() between two checks for new peers and losses.
constexpr std::uint32_t kRoundsPerVisit = 16;
// Limits of drain(): in all, and while nothing moves, as with a peer that is stopped.
constexpr std::chrono::milliseconds kDrain{5000};
constexpr std::chrono::milliseconds kDrainStalled{500};
// Back-pressure: packets queued for one peer, and injected messages under way, whose payload is copied. Other payloads
// lie in the application's own memory and are not counted: it may send many before its peer receives the first.
constexpr std::size_t kMostQueued = 1024;
constexpr std::size_t kMostInjections = 1 << 17;
// The sender looks at its mailbox after this many requests. A program that sends for long without reading completions
// would otherwise miss requests of its peers, such as to announce messages.
constexpr std::uint32_t kRequestsPerLook = 32;
// Rounds of progress() in one look. Each may take 64 pieces.
constexpr int kRoundsPerLook = 64;

MailboxOptions with_overflow(MailboxOptions options) {
  if (options.overflow == 0) options.overflow = kOverflow;
  return options;
}

}  // namespace

Messenger::Messenger(Reporter& reporter, const MailboxOptions& options, std::size_t processors, std::size_t most_eager)
    : layout_(options.layout),
      mailbox_(with_overflow(options)),
      outbox_(mailbox_, reporter),
      links_(mailbox_, outbox_, processors),
      limits_(mailbox_, links_, outbox_),
      offers_(outbox_, limits_, reporter),
      transfers_(mailbox_, links_, outbox_),
      receiver_(outbox_, offers_, transfers_, limits_, reporter),
      sender_(mailbox_, links_, outbox_, offers_, receiver_, reporter, most_eager),
      target_(links_, outbox_, offers_, transfers_, reporter),
      initiator_(mailbox_, outbox_, offers_, transfers_, limits_, target_, reporter) {}

int Messenger::send(const SendRequest& request) {
  if (request.to->peer != Mailbox::kNoPeer && requests_ + 1 < kRequestsPerLook && sender_.send_short(request))
      [[likely]] {
    ++requests_;
    return 0;
  }
  return send_long(request);
}

// The general path: messages that are not short, or that need a connection, room, or a look at the mailbox first.
int Messenger::send_long(const SendRequest& request) {
  if (request.to->self) {
    sender_.send_to_self(request);
    return 0;
  }
  if (const int status = admit(*request.to, request.inject); status != 0) return status;
  const int status = sender_.send(request);
  refused_ |= status != 0;
  return status;
}

int Messenger::receive(const ReceiveRequest& request) {
  receiver_.receive(request);
  return 0;
}

int Messenger::peek(const ReceiveRequest& request, bool claims, bool discards) {
  if (receiver_.peek(request, claims, discards)) return 0;
  peeked_ = true;
  progress();  // so that a program which peeks in a loop finds the message
  return 0;
}

int Messenger::access(const RemoteRequest& request) {
  if (request.to->self) {
    initiator_.access_self(request);
    return 0;
  }
  Link& link = *request.to;
  if (const int status = admit(link, request.inject); status != 0) return status;
  if (request.result.bytes() > 0 && link.asked >= kMostAsked) {
    progress();
    if (link.error != 0) return -link.error;
    if (link.asked >= kMostAsked) return -FI_EAGAIN;
  }
  initiator_.access(request);
  return 0;
}

// Connects if necessary. Returns 0 if the link may take one more request.
int Messenger::admit(Link& link, bool injects) {
  if (const int status = links_.connect(link); status != 0) return status;
  if (++requests_ >= kRequestsPerLook) look();
  if (link.error != 0) return -link.error;
  if (!is_congested(link, injects)) return 0;
  progress();
  return is_congested(link, injects) ? -FI_EAGAIN : 0;
}

bool Messenger::is_congested(const Link& link, bool injects) const {
  return link.queued >= kMostQueued || (injects && limits_.injections >= kMostInjections);
}

// Handles what peers have sent so far, at most kRoundsPerLook rounds.
void Messenger::look() noexcept {
  for (int i = 0; i < kRoundsPerLook && progress(); ++i) continue;
}

bool Messenger::progress() noexcept {
  requests_ = 0;
  bool moved = inbox_.take();
  receiver_.end_round();
  if (!outbox_.is_idle()) moved |= outbox_.flush();
  if (!offers_.is_idle()) moved |= offers_.stream();
  if (!transfers_.is_idle()) moved |= transfers_.pull() || (!moved && transfers_.pull_stalled());
  if (++rounds_ % kRoundsPerVisit == 0) {
    moved |= mailbox_.progress();
    moved |= losses_.take();
    transfers_.close_idle_lanes();
    neighbours_.apply();
  }
  return moved;
}

bool Messenger::awaits_message() {
  const bool refused = std::exchange(refused_, false);
  const bool peeked = std::exchange(peeked_, false);
  return refused || peeked || outgoing() + receiver_.size() + transfers_.size() + target_.size() > 0;
}

bool Messenger::wait(Timeout timeout, bool looks) noexcept {
  if (!transfers_.is_idle()) return true;
  rounds_ |= kRoundsPerVisit - 1;  // the next round checks for new peers and losses, which may end the wait
  return looks ? mailbox_.wait(timeout) : mailbox_.sleep(timeout);
}

bool Messenger::may_sleep() noexcept {
  rounds_ |= kRoundsPerVisit - 1;  // the next round calls Mailbox::progress(), which silences the descriptor
  return !progress() && transfers_.is_idle();
}

void Messenger::drain() noexcept {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + kDrain;
  auto moved = Clock::now();
  while (outgoing() > 0 && Clock::now() < std::min(end, moved + kDrainStalled)) {
    if (progress()) {
      moved = Clock::now();
    } else {
      wait(std::chrono::milliseconds(1));
    }
  }
}

}  // namespace wherry::mpi
