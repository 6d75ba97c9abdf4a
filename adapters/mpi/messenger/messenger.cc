// SPDX-License-Identifier: Apache-2.0
#include "messenger.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <chrono>

#include <wherry/error.hpp>

#include "base/log.hpp"

namespace wherry::mpi {
namespace {

// Rounds of progress() that found nothing between two looks at newcomers and losses.
constexpr std::uint32_t kRoundsPerVisit = 16;
// Closing: in all, and while nothing moves, as with a peer that is stopped.
constexpr std::chrono::milliseconds kDrain{5000};
constexpr std::chrono::milliseconds kDrainInVain{500};

MailboxOptions with_overflow(MailboxOptions options) {
  if (options.overflow == 0) options.overflow = kOverflow;
  return options;
}

}  // namespace

std::uint64_t source_of(const Link* link) { return link == nullptr ? kAnySource : link->address; }

Messenger::Messenger(Reporter& reporter, const MailboxOptions& options, std::size_t processors, std::size_t most_eager)
    : reporter_(reporter),
      layout_(options.layout),
      mailbox_(with_overflow(options)),
      processors_(processors),
      most_eager_(most_eager) {
  mailbox_.listen(Address::parse("wherry+shm://*:*"));
  name_ = Name::of(mailbox_.local());
  link_to(name_).self = true;
}

Messenger::~Messenger() = default;

Link& Messenger::link_to(const Name& name) {
  std::unique_ptr<Link>& link = links_[name.text()];
  if (link == nullptr) {
    link = std::make_unique<Link>();
    link->name = name;
  }
  return *link;
}

void Messenger::call(Link& link, std::uint64_t address) { link.address = address; }

int Messenger::connect(Link& link) {
  if (link.error != 0) return -link.error;
  if (link.self || link.peer != Mailbox::kNoPeer) return 0;
  if (!link.name.is_on_this_host()) return -FI_EHOSTUNREACH;
  try {
    // Ranks learn an address from the process that listens there: if it does no longer, the rank is lost.
    link.peer = mailbox_.connect(link.name.address(), std::chrono::nanoseconds(0));
    say_hello(link);
    return 0;
  } catch (const Error& error) {
    log::write(log::Level::error, error.what());
    link.error = error.code().value();
    return -link.error;
  }
}

bool Messenger::progress() noexcept {
  requests_ = 0;
  bool moved = take_pieces();
  if (!busy_.empty()) moved |= flush();
  if (!pulls_.empty()) moved |= pull();
  if (!moved && !streams_.empty()) moved = end_stalled_streams();
  if (++rounds_ % kRoundsPerVisit == 0) {
    moved |= mailbox_.progress();
    moved |= take_losses();
    if (!lanes_.empty()) close_idle_lanes();
    if (declared_changed_.load(std::memory_order_relaxed)) apply_declared();
  }
  return moved;
}

bool Messenger::wait(Timeout timeout, bool looks) noexcept {
  if (!pulls_.empty() || !streams_.empty()) return true;
  rounds_ |= kRoundsPerVisit - 1;  // a power of two less one: whatever woke us, the next round sees it
  return looks ? mailbox_.wait(timeout) : mailbox_.sleep(timeout);
}

bool Messenger::may_sleep() noexcept {
  rounds_ |= kRoundsPerVisit - 1;  // it must look at the mailbox itself, which is silent only after that
  return !progress();
}

void Messenger::drain() noexcept {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + kDrain;
  auto moved = Clock::now();
  while (sends_.taken() > 0 && Clock::now() < std::min(end, moved + kDrainInVain)) {
    if (progress()) {
      moved = Clock::now();
    } else {
      wait(std::chrono::milliseconds(1));
    }
  }
}

}  // namespace wherry::mpi
