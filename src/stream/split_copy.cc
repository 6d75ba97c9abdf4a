// SPDX-License-Identifier: Apache-2.0
#include "stream/split_copy.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/config.hpp"

namespace wherry::stream {
namespace {

using fabric::Bell;
using fabric::Wake;
using layout::SplitDeal;
using layout::SplitWords;
using layout::StreamPage;

constexpr std::size_t kSmallestPiece = std::size_t{128} << 10;
constexpr std::size_t kLargestPiece = std::size_t{1} << 20;

/// How long a cancelled call waits for the peer's last piece, so that its buffer is its own again when it returns. The
/// peer needs some microseconds, unless it stands still.
constexpr std::chrono::seconds kPatience{1};

/// About 4 us: as long as a piece of the ring takes to copy.
constexpr int kHopefulLooks = 300;

/// More pieces than any transfer has.
constexpr std::uint64_t kAllClaimed = UINT64_MAX / 2;

/// A quarter: two for each side, or more for the one that the other keeps waiting. Each costs about a microsecond of
/// system call (256 KiB at 31 GB/s in two pieces, at 22 in eight); few, and the one with the last keeps the other
/// waiting.
std::size_t piece_of(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  return std::clamp(bytes / 4 / kPage * kPage, kSmallestPiece, kLargestPiece);
}

SplitWords* words_in(std::byte* segment) {
  return segment == nullptr ? nullptr : &reinterpret_cast<StreamPage*>(segment)->split;
}

}  // namespace

SplitEnd::SplitEnd(fabric::Connection& connection, SplitWords* words, Fate& fate)
    : connection_(connection),
      words_(words),
      fate_(fate),
      threshold_(words == nullptr ? 0 : config::number(config::Key::split)) {}

/// The sender works from the front and the receiver from the back, so that each finds in its cache what it copied of
/// the message before, in the same buffers. `claimed` counts the pieces of both: as long as it is below their number,
/// the two have not met.
template <class CopyPiece>
bool SplitEnd::copy_pieces(std::size_t bytes, From from, CopyPiece&& copy) {
  const std::size_t piece = piece_of(bytes);
  const std::size_t pieces = (bytes + piece - 1) / piece;
  for (std::size_t mine = 0; mine < pieces; ++mine) {
    if (fate_.cancelled.load(std::memory_order_relaxed)) return stop();
    if (words_->claimed.fetch_add(1, std::memory_order_relaxed) >= pieces) return true;
    const std::size_t start = (from == From::front ? mine : pieces - 1 - mine) * piece;
    const std::size_t count = std::min(piece, bytes - start);
    if (copy(start, count) != count) return stop();
  }
  return true;
}

/// Neither side takes another piece.
bool SplitEnd::stop() {
  words_->claimed.store(kAllClaimed, std::memory_order_relaxed);
  return false;
}

SplitEnd::Outcome SplitEnd::finish(layout::Word& own, const layout::Word& peers, bool refused, Bell own_bell) {
  // SPLIT-DONE release: the pieces this side copied; pairs with the acquire below, at the peer.
  own.store(2 * number_ + (refused ? 1 : 0), std::memory_order_release);
  connection_.announce(own_bell == Bell::data ? Bell::space : Bell::data);
  const bool lost = !await(peers, own_bell);
  const bool peer_refused = peers.load(std::memory_order_acquire) % 2 != 0;
  if (!lost && !refused && !peer_refused) return Outcome::copied;
  // Also when lost: a peer that goes on after all would take pieces of the next transfer for pieces of this one.
  disable();
  return lost ? Outcome::lost : Outcome::refused;
}

/// Waits until the peer has said that it has finished. False: it is gone, or this side was cancelled and the peer
/// stands still.
bool SplitEnd::await(const layout::Word& peers, Bell bell) {
  // SPLIT-DONE acquire: pairs with the release in finish.
  const auto finished = [&] { return peers.load(std::memory_order_acquire) / 2 == number_; };
  fabric::Deadline deadline;
  while (!finished()) {
    const bool cancelled = fate_.cancelled.load(std::memory_order_relaxed);
    if (cancelled && !deadline) deadline = SteadyClock::now() + kPatience;
    if (fate_.gone.load(std::memory_order_acquire)) return finished();  // GONE
    if (spin_.look(finished, deadline)) return true;
    const auto ready = [&] { return finished() || (!deadline && fate_.cancelled.load(std::memory_order_relaxed)); };
    const Wake wake = sleep_unless(connection_, bell, deadline, ready, [] {});
    if (wake == Wake::gone) fate_.gone.store(true, std::memory_order_release);  // GONE
    if (wake == Wake::timeout) return finished();
  }
  return true;
}

SplitReceiver::SplitReceiver(fabric::Connection& connection, Fate& fate)
    : SplitEnd(connection, connection.map() == nullptr ? nullptr : words_in(connection.segment().data()), fate) {}

void SplitReceiver::invite(std::uint64_t head, std::span<std::byte> buffer) {
  if (open_ || !wants_rest(buffer.size()) || !connection_.reaches_private_memory()) return;
  ++number_;
  words_->invited_position.store(head, std::memory_order_relaxed);
  words_->invited_address.store(reinterpret_cast<std::uint64_t>(buffer.data()), std::memory_order_relaxed);
  words_->invited_bytes.store(buffer.size(), std::memory_order_relaxed);
  words_->claimed.store(0, std::memory_order_relaxed);
  // SPLIT-DEAL release: the invitation; pairs with the acquire in SplitSender::invitation.
  words_->deal.store(deal(SplitDeal::open), std::memory_order_release);
  open_ = true;
  connection_.announce(Bell::space);  // The sender may be asleep in the hope of this.
}

bool SplitReceiver::withdraw() {
  if (!open_) return true;
  std::uint64_t expected = deal(SplitDeal::open);
  // SPLIT-DEAL: whichever of the two sides is first.
  if (!words_->deal.compare_exchange_strong(expected, deal(SplitDeal::closed), std::memory_order_acq_rel)) {
    if (expected == deal(SplitDeal::accepted)) return false;
    disable();  // Nobody could have written that but a peer that breaks the rules: it is not invited again.
  }
  open_ = false;
  return true;
}

void SplitReceiver::close() {
  words_->deal.store(deal(SplitDeal::closed), std::memory_order_relaxed);
  open_ = false;
}

Result SplitReceiver::take(std::span<std::byte> buffer) {
  const std::uint64_t bytes = words_->offered_bytes.load(std::memory_order_relaxed);
  const std::uint64_t address = words_->offered_address.load(std::memory_order_relaxed);
  if (bytes == 0 || bytes > buffer.size()) {
    abandon();
    return Result::failure(EPROTO);
  }
  const bool copied = copy_pieces(bytes, From::back, [&](std::size_t start, std::size_t count) {
    return connection_.read_private(buffer.subspan(start, count), address + start);
  });
  const Outcome outcome = finish(words_->receiver_finished, words_->sender_finished, !copied, Bell::data);
  close();
  if (outcome == Outcome::lost) {
    return Result::failure(fate_.cancelled.load(std::memory_order_relaxed) ? ECANCELED : ECONNRESET);
  }
  return Result::moved(outcome == Outcome::copied ? bytes : 0);
}

void SplitReceiver::abandon() {
  (void)finish(words_->receiver_finished, words_->sender_finished, !stop(), Bell::data);
  close();
}

SplitSender::SplitSender(fabric::Connection& connection, Fate& fate)
    : SplitEnd(connection, words_in(connection.map()), fate) {}

/// Everything in it is the peer's claim: an address in the peer's memory, and a range that is only compared.
SplitSender::Invitation SplitSender::invitation(std::uint64_t tail) const {
  // SPLIT-DEAL acquire: pairs with the release in SplitReceiver::invite.
  const std::uint64_t deal = words_->deal.load(std::memory_order_acquire);
  if (deal % 4 != static_cast<std::uint64_t>(SplitDeal::open)) return {};
  const std::uint64_t ahead = tail - words_->invited_position.load(std::memory_order_relaxed);
  const std::uint64_t bytes = words_->invited_bytes.load(std::memory_order_relaxed);
  if (ahead >= bytes) return {};
  return {deal, words_->invited_address.load(std::memory_order_relaxed) + ahead, bytes - ahead};
}

void SplitSender::hope(std::uint64_t tail) {
  if (!hopeful_) return;
  for (int i = 0; i < kHopefulLooks; ++i) {
    if (invited(tail)) return;
    arch::pause();
  }
}

std::optional<Result> SplitSender::send(std::uint64_t tail, std::span<const std::byte> bytes) {
  if (!wants_rest(bytes.size())) return {};
  const Invitation invited = invitation(tail);
  const std::size_t count = std::min(invited.bytes, bytes.size());
  if (count == 0 || !wants_rest(count) || !connection_.reaches_private_memory()) return {};
  words_->offered_position.store(tail, std::memory_order_relaxed);
  words_->offered_address.store(reinterpret_cast<std::uint64_t>(bytes.data()), std::memory_order_relaxed);
  words_->offered_bytes.store(count, std::memory_order_relaxed);
  std::uint64_t expected = invited.deal;
  // SPLIT-DEAL: the offer, unless the receiver has withdrawn; pairs with the acquire in SplitReceiver::accepted.
  if (!words_->deal.compare_exchange_strong(expected, expected + 1, std::memory_order_acq_rel)) return {};
  connection_.announce(Bell::data);
  number_ = invited.deal / 4;
  hopeful_ = true;
  if (splits_to_go_ > 0) --splits_to_go_;
  // Asked while the receiver copies already: what is written must not be some other process.
  const bool recognised = connection_.recognises_peer() || stop();
  const bool copied = recognised && copy_pieces(count, From::front, [&](std::size_t start, std::size_t n) {
                        return connection_.write_private(invited.address + start, bytes.subspan(start, n));
                      });
  const Outcome outcome = finish(words_->sender_finished, words_->receiver_finished, !copied, Bell::space);
  if (outcome == Outcome::lost) {
    return Result::failure(fate_.cancelled.load(std::memory_order_relaxed) ? ECANCELED : EPIPE);
  }
  return Result::moved(outcome == Outcome::copied ? count : 0);
}

}  // namespace wherry::stream
