// SPDX-License-Identifier: Apache-2.0
#include "limits.hpp"

namespace wherry::mpi {
namespace {

// Bytes of unexpected messages: beyond the first, senders are asked to announce their messages; at the second, they may
// send eagerly again.
constexpr std::uint64_t kStopEager = 64 << 20;
constexpr std::uint64_t kResumeEager = 32 << 20;
// Bytes that a peer may add after `stop_eager`, besides what its section holds. The shortest packet takes 40 bytes of
// the section, and kOverrunPerByte times as much here (UnexpectedMessages).
constexpr std::uint64_t kMostOverrun = 64 << 20;
// Requests of one peer under way here: unmatched announcements, accesses, and answers that it does not take. The peer
// itself needs more memory for each of them than this process.
constexpr std::size_t kMostHeld = 1 << 20;

}  // namespace

void Limits::keep(Link& from, std::uint64_t bytes) {
  buffered_ += bytes;
  if (from.stopped) from.overrun += bytes;
  if (buffered_ > kStopEager) stop_eager(from);
}

void Limits::stop_eager(Link& link) {
  if (link.stopped) return;
  link.stopped = any_stopped_ = true;
  link.overrun = 0;
  outbox_.notify(link, Operation::stop_eager);
}

void Limits::release(std::uint64_t bytes) {
  buffered_ -= bytes;
  if (any_stopped_ && buffered_ <= kResumeEager) resume_eager();
}

void Limits::resume_eager() {
  any_stopped_ = false;
  links_.for_each([&](Link& link) {
    if (link.stopped && link.error == 0) outbox_.notify(link, Operation::resume_eager);
    link.stopped = false;
  });
}

bool Limits::overruns(const Link& link) const noexcept {
  return link.stopped && link.overrun > kMostOverrun &&
         link.overrun > kMostOverrun + kOverrunPerByte * mailbox_.section(link.peer).incoming;
}

bool Limits::is_exceeded(const Link& link) noexcept { return link.held + link.queued > kMostHeld; }

}  // namespace wherry::mpi
