// SPDX-License-Identifier: Apache-2.0
#include "stream/split_copy.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/config.hpp"

namespace wherry::stream {
namespace {

using fabric::Bell;
using fabric::Wake;
using layout::SplitDeal;
using layout::SplitEnding;
using layout::SplitWords;
using layout::StreamPage;

constexpr std::size_t kSmallestPiece = std::size_t{128} << 10;
constexpr std::size_t kLargestPiece = std::size_t{1} << 20;

/// How long a cancelled call waits for the peer's last piece, so that nothing writes to the caller's buffer after it
/// returns. The peer needs some microseconds, unless it is stopped.
constexpr std::chrono::seconds kSplitPeerTimeout{1};

/// Looks for an invitation before a large send: about 4 us, as long as a piece of the ring takes to copy.
constexpr int kInvitationLooks = 300;

/// Larger than the number of pieces of any transfer.
constexpr std::uint64_t kAllTaken = UINT64_MAX / 2;

/// A quarter of the message: two pieces for each side, or more for the side that is early. An eighth if the message
/// exceeds a megabyte, since the last piece keeps the other side waiting. Each piece costs about a microsecond of
/// system call (256 KiB: 31 GB/s in two pieces, 22 in eight).
std::size_t piece_of(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kLittle = std::size_t{256} << 10;
  const std::size_t share = std::max(bytes / 8, std::min(bytes / 4, kLittle));
  return std::clamp(share / kPage * kPage, kSmallestPiece, kLargestPiece);
}

SplitWords* words_in(std::byte* segment) {
  return segment == nullptr ? nullptr : &reinterpret_cast<StreamPage*>(segment)->split;
}

}  // namespace

SplitEnd::SplitEnd(fabric::Connection& connection, SplitWords* words, ConnectionState& connection_state)
    : connection_(connection),
      private_memory_(connection.private_memory()),
      words_(words),
      connection_state_(connection_state),
      threshold_(words == nullptr ? 0 : config::number(config::Key::split)) {}

bool SplitEnd::begin(std::uint64_t seen, SplitDeal state) {
  const std::uint64_t next = seen - seen % 4 + 4 + static_cast<std::uint64_t>(state);
  const std::uint64_t taken = words_->pieces_taken.load(std::memory_order_relaxed);
  // SPLIT-DEAL: publishes the invitation or offer, unless the peer's was first; pairs with the acquire loads of the
  // word.
  if (!words_->deal.compare_exchange_strong(seen, next, std::memory_order_acq_rel)) return false;
  number_ = next / 4;
  base_ = taken;
  return true;
}

bool SplitEnd::accept(std::uint64_t seen) {
  const std::uint64_t accepted = seen - seen % 4 + static_cast<std::uint64_t>(SplitDeal::accepted);
  const std::uint64_t taken = words_->pieces_taken.load(std::memory_order_relaxed);
  // SPLIT-DEAL: accepts unless the peer has withdrawn; pairs with the acquire loads of the word.
  if (!words_->deal.compare_exchange_strong(seen, accepted, std::memory_order_acq_rel)) return false;
  number_ = accepted / 4;
  base_ = taken;
  return true;
}

/// Withdraws this side's invitation or offer. False: the peer has accepted it.
bool SplitEnd::close(SplitDeal state) {
  std::uint64_t expected = deal(state);
  // SPLIT-DEAL: withdraws unless the peer has accepted first.
  if (words_->deal.compare_exchange_strong(expected, deal(SplitDeal::closed), std::memory_order_acq_rel)) return true;
  if (expected == deal(SplitDeal::accepted)) return false;
  disable();  // only a peer that breaks the protocol writes another state
  return true;
}

/// The sender copies from the front and the receiver from the back. So each side's cache holds the lines that it copied
/// of the message before, in the same buffers. `pieces_taken` counts the pieces of both: all are taken once it has
/// grown by the number of pieces.
template <class CopyPiece>
SplitEnd::Share SplitEnd::copy_pieces(std::size_t bytes, From from, CopyPiece&& copy) {
  const std::size_t piece = piece_of(bytes);
  const std::size_t pieces = (bytes + piece - 1) / piece;
  for (std::size_t mine = 0; mine < pieces; ++mine) {
    if (connection_state_.cancelled.load(std::memory_order_relaxed)) return stop();
    if (words_->pieces_taken.fetch_add(1, std::memory_order_relaxed) - base_ >= pieces) return Share::part;
    const std::size_t start = (from == From::front ? mine : pieces - 1 - mine) * piece;
    const std::size_t count = std::min(piece, bytes - start);
    if (copy(start, count) != count) return stop();
  }
  return Share::all;
}

/// Claims all pieces, so that neither side takes another.
SplitEnd::Share SplitEnd::stop() {
  words_->pieces_taken.store(kAllTaken, std::memory_order_relaxed);
  return Share::refused;
}

SplitEnd::Outcome SplitEnd::finish(layout::Word& own, const layout::Word& peers, Share share, Bell own_bell) {
  const bool refused = share == Share::refused;
  // SPLIT-DONE release: the pieces that this side copied; pairs with the acquire loads of the peer.
  own.store(ending(refused ? SplitEnding::refused : SplitEnding::part), std::memory_order_release);
  connection_.announce(own_bell == Bell::data ? Bell::space : Bell::data);
  const bool lost = !await(peers, own_bell);
  const bool peer_refused = peers.load(std::memory_order_acquire) == ending(SplitEnding::refused);  // SPLIT-DONE
  if (!lost && !refused && !peer_refused) return Outcome::copied;
  // Also if lost: a peer that continues later would count pieces of the next transfer as pieces of this one.
  disable();
  return lost ? Outcome::lost : Outcome::refused;
}

/// Waits for the peer's finished word. False if the peer is gone, or if this side was cancelled and kSplitPeerTimeout
/// passed.
bool SplitEnd::await(const layout::Word& peers, Bell bell) {
  const auto finished = [&] { return has_finished(peers); };
  fabric::Deadline deadline;
  while (!finished()) {
    const bool cancelled = connection_state_.cancelled.load(std::memory_order_relaxed);
    if (cancelled && !deadline) deadline = SteadyClock::now() + kSplitPeerTimeout;
    if (connection_state_.gone.load(std::memory_order_acquire)) return finished();  // GONE
    if (spin_.look(finished, deadline)) return true;
    const auto ready = [&] {
      return finished() || (!deadline && connection_state_.cancelled.load(std::memory_order_relaxed));
    };
    const Wake wake = sleep_unless(connection_, bell, deadline, ready, [] {});
    if (wake == Wake::gone) connection_state_.gone.store(true, std::memory_order_release);  // GONE
    if (wake == Wake::timeout) return finished();
  }
  return true;
}

SplitReceiver::SplitReceiver(fabric::Connection& connection, ConnectionState& connection_state)
    : SplitEnd(connection, connection.map() == nullptr ? nullptr : words_in(connection.segment().data()),
               connection_state) {}

void SplitReceiver::invite(std::uint64_t head, std::span<std::byte> buffer) {
  accepts_offers_ = wants_rest(buffer.size()) && reaches_peer();
  if (open_ || !accepts_offers_) return;
  const std::uint64_t seen = words_->deal.load(std::memory_order_acquire);  // SPLIT-DEAL
  const SplitDeal state = state_of(seen);
  if (state == SplitDeal::offered) return;
  if (state != SplitDeal::closed && seen != deal(SplitDeal::accepted))
    return disable();  // only a hostile peer writes that
  if (state == SplitDeal::accepted && !has_finished(words_->sender_finished)) return;
  words_->invited_position.store(head, std::memory_order_relaxed);
  words_->invited_address.store(reinterpret_cast<std::uint64_t>(buffer.data()), std::memory_order_relaxed);
  words_->invited_bytes.store(buffer.size(), std::memory_order_relaxed);
  open_ = begin(seen, SplitDeal::open);
  by_offer_ = false;
  if (open_) connection_.announce(Bell::space);  // the sender may sleep in over_offer()
}

bool SplitReceiver::agreed() const {
  if (!open_ && !accepts_offers_) return false;
  const std::uint64_t seen = words_->deal.load(std::memory_order_acquire);  // SPLIT-DEAL
  return open_ ? seen == deal(SplitDeal::accepted) : state_of(seen) == SplitDeal::offered;
}

bool SplitReceiver::withdraw() {
  accepts_offers_ = false;
  if (open_) open_ = !close(SplitDeal::open);
  return !open_;
}

/// Accepts the offer for as many bytes as fit into `buffer`.
bool SplitReceiver::accept_offer(std::span<std::byte> buffer) {
  const std::uint64_t seen = words_->deal.load(std::memory_order_acquire);  // SPLIT-DEAL
  if (state_of(seen) != SplitDeal::offered) return false;
  words_->invited_address.store(reinterpret_cast<std::uint64_t>(buffer.data()), std::memory_order_relaxed);
  words_->invited_bytes.store(buffer.size(), std::memory_order_relaxed);
  if (!accept(seen)) return false;
  open_ = true;
  by_offer_ = true;
  connection_.announce(Bell::space);  // the sender may wake up in time to copy its part
  return true;
}

Result SplitReceiver::take(std::uint64_t head, std::span<std::byte> buffer) {
  if (!open_ && !accept_offer(buffer)) return Result::moved(0);
  const std::uint64_t position = words_->offered_position.load(std::memory_order_relaxed);
  const std::uint64_t offered = words_->offered_bytes.load(std::memory_order_relaxed);
  const std::uint64_t address = words_->offered_address.load(std::memory_order_relaxed);
  // An offer may exceed the buffer; the answer to an invitation may not.
  const std::uint64_t bytes = by_offer_ ? std::min<std::uint64_t>(offered, buffer.size()) : offered;
  if (position != head || bytes == 0 || bytes > buffer.size()) {
    abandon();
    return Result::failure(EPROTO);
  }
  return take(buffer.first(bytes), address);
}

Result SplitReceiver::take(std::span<std::byte> buffer, std::uint64_t address) {
  Share share = copy_pieces(buffer.size(), From::back, [&](std::size_t start, std::size_t count) {
    return private_memory_->read(buffer.subspan(start, count), address + start);
  });
  if (by_offer_ && share == Share::all) {
    if (is_offer_intact()) {
      words_->receiver_finished.store(ending(SplitEnding::all), std::memory_order_release);  // SPLIT-DONE
      connection_.announce(Bell::space);
      open_ = false;
      return Result::moved(buffer.size());
    }
    share = stop();
  }
  const Outcome outcome = finish(words_->receiver_finished, words_->sender_finished, share, Bell::data);
  open_ = false;
  if (outcome == Outcome::lost) {
    return Result::failure(connection_state_.cancelled.load(std::memory_order_relaxed) ? ECANCELED : ECONNRESET);
  }
  return Result::moved(outcome == Outcome::copied ? buffer.size() : 0);
}

/// Whether the pieces just read are what the sender offered. The sender must not have given up before the last piece
/// was read: its buffer would belong to the program again. And no other process may have taken over its process number.
bool SplitReceiver::is_offer_intact() {
  return words_->sender_finished.load(std::memory_order_acquire) != ending(SplitEnding::refused) &&  // SPLIT-DONE
         private_memory_->recognise();
}

void SplitReceiver::abandon() {
  (void)finish(words_->receiver_finished, words_->sender_finished, stop(), Bell::data);
  open_ = false;
}

SplitSender::SplitSender(fabric::Connection& connection, ConnectionState& connection_state)
    : SplitEnd(connection, words_in(connection.map()), connection_state) {}

/// The values come from the peer and are not checked: the address is in the peer's own memory, and the range is only
/// compared.
SplitSender::Invitation SplitSender::invitation(std::uint64_t tail) const {
  // SPLIT-DEAL acquire: pairs with the release in SplitReceiver::invite.
  const std::uint64_t deal = words_->deal.load(std::memory_order_acquire);
  if (deal % 4 != static_cast<std::uint64_t>(SplitDeal::open)) return {};
  const std::uint64_t ahead = tail - words_->invited_position.load(std::memory_order_relaxed);
  const std::uint64_t bytes = words_->invited_bytes.load(std::memory_order_relaxed);
  if (ahead >= bytes) return {};
  return {deal, words_->invited_address.load(std::memory_order_relaxed) + ahead, bytes - ahead};
}

void SplitSender::wait_for_invitation(std::uint64_t tail) {
  if (!expects_invitation_) return;
  for (int i = 0; i < kInvitationLooks; ++i) {
    if (invited(tail)) return;
    arch::pause();
  }
}

std::optional<Result> SplitSender::send(std::uint64_t tail, std::span<const std::byte> bytes) {
  if (!wants_rest(bytes.size())) return {};
  const Invitation invited = invitation(tail);
  const std::size_t count = std::min(invited.bytes, bytes.size());
  if (count == 0 || !wants_rest(count) || !reaches_peer()) return {};
  store_offered(tail, bytes.first(count));
  if (!accept(invited.deal)) return {};
  connection_.announce(Bell::data);
  return copy(invited.address, bytes.first(count));
}

/// Stores position, address and length of the bytes that follow the ring's byte `tail`.
void SplitSender::store_offered(std::uint64_t tail, std::span<const std::byte> bytes) {
  words_->offered_position.store(tail, std::memory_order_relaxed);
  words_->offered_address.store(reinterpret_cast<std::uint64_t>(bytes.data()), std::memory_order_relaxed);
  words_->offered_bytes.store(bytes.size(), std::memory_order_relaxed);
}

/// Copies this side's part of an accepted deal.
Result SplitSender::copy(std::uint64_t address, std::span<const std::byte> bytes) {
  expects_invitation_ = true;
  if (splits_to_go_ > 0) --splits_to_go_;
  Outcome outcome = Outcome::copied;
  if (all_taken()) {
    words_->sender_finished.store(ending(SplitEnding::part),
                                  std::memory_order_release);  // SPLIT-DONE: the next may begin
  } else {
    // Checked while the receiver already copies: the memory written to must belong to the peer, not to a later process
    // with its number.
    const bool recognised = private_memory_->recognise();
    const Share share =
        !recognised ? stop() : copy_pieces(bytes.size(), From::front, [&](std::size_t start, std::size_t n) {
          return private_memory_->write(address + start, bytes.subspan(start, n));
        });
    outcome = finish(words_->sender_finished, words_->receiver_finished, share, Bell::space);
  }
  if (outcome == Outcome::copied || all_taken()) return Result::moved(bytes.size());
  if (outcome == Outcome::refused) return Result::moved(0);
  return Result::failure(connection_state_.cancelled.load(std::memory_order_relaxed) ? ECANCELED : EPIPE);
}

/// Whether the receiver has copied every piece. The bytes then count as received, even if this side has given up
/// meanwhile.
bool SplitSender::all_taken() const {
  return words_->receiver_finished.load(std::memory_order_acquire) == ending(SplitEnding::all);  // SPLIT-DONE
}

void SplitSender::offer(std::uint64_t tail, std::span<const std::byte> bytes) {
  const std::uint64_t seen = words_->deal.load(std::memory_order_acquire);  // SPLIT-DEAL
  // An accepted deal of this side is finished on both sides: finish() waited for both.
  const bool over = state_of(seen) == SplitDeal::closed || seen == deal(SplitDeal::accepted);
  if (!over || !reaches_peer()) return;
  store_offered(tail, bytes);
  offering_ = begin(seen, SplitDeal::offered);
  if (offering_) connection_.announce(Bell::data);
}

bool SplitSender::answered(std::uint64_t tail) const {
  if (!offering_) return invited(tail);
  return words_->deal.load(std::memory_order_acquire) != deal(SplitDeal::offered);  // SPLIT-DEAL
}

std::optional<Result> SplitSender::conclude(std::uint64_t tail, std::span<const std::byte> bytes) {
  const bool accepted = std::exchange(offering_, false) && !close(SplitDeal::offered);
  update_penalty(accepted || invited(tail));
  if (!accepted) return {};
  const std::uint64_t count =
      std::min<std::uint64_t>(words_->invited_bytes.load(std::memory_order_relaxed), bytes.size());
  return copy(words_->invited_address.load(std::memory_order_relaxed), bytes.first(count));
}

void SplitSender::update_penalty(bool found) {
  if (!found) expects_invitation_ = false;
  penalty_ = found ? 0 : std::min(penalty_ * 2 + 1, kMaxPenalty);
  splits_to_go_ = penalty_;
}

}  // namespace wherry::stream
