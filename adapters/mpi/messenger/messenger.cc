// SPDX-License-Identifier: Apache-2.0
#include "messenger.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <chrono>

namespace wherry::mpi {
namespace {

// Rounds of progress() that found nothing between two looks at newcomers and losses.
constexpr std::uint32_t kRoundsPerVisit = 16;
// Closing: in all, and while nothing moves, as with a peer that is stopped.
constexpr std::chrono::milliseconds kDrain{5000};
constexpr std::chrono::milliseconds kDrainStalled{500};
// Back-pressure: packets that wait for room at one peer, and injected messages, whose payload is copied, that wait for
// anything. Others are in the application's own memory: it may send as many before its peer receives the first.
constexpr std::size_t kMostQueued = 1024;
constexpr std::size_t kMostInjections = 1 << 17;
// The sender looks at its mailbox after this many requests. A program that sends for long without reading completions
// would otherwise miss what peers ask of it, such as to announce messages.
constexpr std::uint32_t kRequestsPerLook = 32;
// Rounds of progress() in one look, each of which may take 64 packets.
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

// What is not short, or has to wait or to be looked at first.
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
  progress();  // a program that peeks again and again finds it
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

// 0: one more request may go there.
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

// Takes what peers have sent so far, unless that is very much.
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
  rounds_ |= kRoundsPerVisit - 1;  // a power of two less one: whatever woke us, the next round sees it
  return looks ? mailbox_.wait(timeout) : mailbox_.sleep(timeout);
}

bool Messenger::may_sleep() noexcept {
  rounds_ |= kRoundsPerVisit - 1;  // it must look at the mailbox itself, which is silent only after that
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
