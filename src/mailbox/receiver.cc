// SPDX-License-Identifier: Apache-2.0
#include "mailbox/receiver.hpp"

#include <cerrno>
#include <utility>

#include "arch/pause.hpp"
#include "arch/shared_copy.hpp"
#include "mailbox/impl.hpp"

namespace wherry::mailbox {
namespace {

/// Pieces read from one peer before the others have their turn.
constexpr unsigned kPiecesPerTurn = 8;
/// About as many looks as a round trip between two cores takes.
constexpr unsigned kLooksWithoutPause = 16;
/// Looks at the tails alone between two whole looks. They delay what no tail announces, such as a grant, or the end of
/// a peer.
constexpr unsigned kLooksAtTails = 15;

}  // namespace

Result Receiver::try_peek(Mailbox::Piece& piece) noexcept {
  engine_.poll_kernel_after(1);
  if (tails_looks_ < kLooksAtTails && is_unchanged()) {
    ++tails_looks_;
    return find_nothing();
  }
  if (early_.has_unread()) [[unlikely]]
    return find_early(piece);
  return find_in_active(piece);
}

Result Receiver::find_in_active(Mailbox::Piece& piece) noexcept {
  tails_.restart();
  const unsigned looks = 1 + std::exchange(tails_looks_, 0);
  const std::uint64_t version = bells_.version();
  auto& active = bells_.active();
  const std::size_t all = active.size();
  for (std::size_t left = all; left > 0 && !active.empty(); --left) {
    Pair& pair = *active.front();
    if (!pair.in->has_known() && is_silent(pair)) {
      pair.idle_looks += looks;
      tails_.add(pair);
    } else {
      // Bytes are delivered before other events: a death, or a grant that was not seen before.
      if (!pair.claims_again && !pair.out->grant_waits() && find_in(pair, piece)) {
        return Result::moved(piece.bytes.size());
      }
      const bool served = engine_.serve(pair);
      if (early_.has_unread()) [[unlikely]]
        return find_early(piece);
      if (!pair.is_open()) continue;
      if (served && find_in(pair, piece)) return Result::moved(piece.bytes.size());
    }
    pair.turn = 0;
    if (active.size() > 1) bells_.end_turn(pair);
    engine_.arm_if_quiet(pair);
  }
  tails_.complete(all, version);
  return find_nothing();
}

Result Receiver::find_nothing() noexcept {
  // A polling program calls again at once, and the peer may run on the other thread of the same core: pause for it.
  // During the first few looks a reply is in flight, and a pause takes as long as a line from another core.
  if (++idle_looks_ > kLooksWithoutPause) arch::pause();
  return Result::blocked();
}

Result Receiver::find_early(Mailbox::Piece& piece) noexcept {
  early_.find(piece);
  idle_looks_ = 0;
  return Result::moved(piece.bytes.size());
}

/// Whether ProgressEngine::serve would find nothing, and change nothing but `idle_looks`.
bool Receiver::is_silent(const Pair& pair) noexcept {
  return pair.in->is_silent() && !pair.claims_again && !pair.out->grant_waits() && !pair.out->broken() && !pair.gone &&
         !pair.wants_room;
}

bool Receiver::find_in(Pair& pair, Mailbox::Piece& piece) noexcept {
  if (!pair.in->find(piece)) return false;
  pair.idle_looks = idle_looks_ = 0;
  piece.from = pair.number;
  return true;
}

void Receiver::consume(const Mailbox::Piece& piece, std::size_t bytes) noexcept {
  if (early_.has_unread()) [[unlikely]] {
    Pair* const from = pairs_.find(piece.from);
    if (from != nullptr && from->early_received != nullptr) return consume_early(*from, bytes);
  }
  Pair* pair = pairs_.find_open(piece.from);
  if (pair == nullptr || !pair->in->consume(bytes)) return;
  if (pair->in->take_agreement()) sections_.on_agreement(*pair);
  sections_.on_consumed(*pair, bytes);
  if (++pair->turn >= kPiecesPerTurn && pair->active) {
    pair->turn = 0;
    bells_.end_turn(*pair);
  }
}

void Receiver::consume_early(Pair& pair, std::size_t bytes) noexcept {
  if (early_.consume(pair, bytes) && pair.is_open()) sections_.on_consumed(pair, bytes);
}

/// The pair whose message try_receive has begun. Null: none, or it was lost.
Pair* Receiver::half_copied() const noexcept {
  Pair* pair = pairs_.find_open(half_copied_from_);
  return pair != nullptr && pair->half_copied ? pair : nullptr;
}

/// As try_peek, but prefers the message that try_receive has begun.
Result Receiver::next_piece(Mailbox::Piece& piece) noexcept {
  Pair* pair = half_copied();
  if (pair == nullptr) return try_peek(piece);
  if (!pair->in->find(piece)) {
    engine_.poll_kernel_after(1);
    if (pair->is_open()) (void)engine_.serve(*pair);
    return Result::blocked();
  }
  piece.from = pair->number;
  return Result::moved(piece.bytes.size());
}

Result Receiver::try_receive(std::span<std::byte> buffer, Mailbox::Peer& from) noexcept {
  while (true) {
    Mailbox::Piece piece;
    if (const Result result = next_piece(piece); !result.ok()) return result;
    const auto length = static_cast<std::size_t>(piece.message_bytes);
    if (length > buffer.size()) return Result::failure(EMSGSIZE, length);
    const auto offset = static_cast<std::size_t>(piece.offset);
    auto to = buffer.subspan(offset);
    for (const auto& part : {piece.bytes.first, piece.bytes.second}) {
      arch::copy_out_of_shared(to.data(), part.data(), part.size());
      to = to.subspan(part.size());
    }
    const bool whole = offset + piece.bytes.size() == length;
    half_copied_from_ = piece.from;
    pairs_.find(piece.from)->half_copied = !whole;
    consume(piece, piece.bytes.size());
    if (!whole) continue;
    from = piece.from;
    return Result::moved(length);
  }
}

Result Receiver::receive(std::span<std::byte> buffer, Mailbox::Peer& from, const Timeout& timeout) noexcept {
  const fabric::Deadline deadline = stream::deadline_of(timeout);
  while (true) {
    const Result result = try_receive(buffer, from);
    if (!result.would_block() || pairs_.has_losses()) return result;
    Pair* pair = half_copied();
    const bool found = pair == nullptr ? waiter_.wait_to_receive(deadline) : wait_for_rest(*pair, deadline);
    if (!found) return Result::failure(ETIMEDOUT);
    if (waiter_.take_interruption()) return try_receive(buffer, from);
  }
}

/// Waits for the rest of the message that try_receive has begun. False: the deadline passed.
bool Receiver::wait_for_rest(Pair& pair, const fabric::Deadline& deadline) noexcept {
  bells_.activate(pair);
  const auto ready = [&] { return !pair.is_open() || pair.in->waiting() || pair.gone || pair.in->finished() != 0; };
  return waiter_.wait_for_pair(ready, fabric::Bell::data, deadline);
}

}  // namespace wherry::mailbox

namespace wherry {

Result Mailbox::try_peek(Piece& piece) noexcept { return impl_->receiver.try_peek(piece); }
bool Mailbox::has_news() noexcept { return impl_->receiver.has_news(); }
void Mailbox::consume(const Piece& piece, std::size_t bytes) noexcept { impl_->receiver.consume(piece, bytes); }
Result Mailbox::try_receive(std::span<std::byte> buffer, Peer& from) noexcept {
  return impl_->receiver.try_receive(buffer, from);
}
Result Mailbox::receive(std::span<std::byte> buffer, Peer& from, Timeout timeout) noexcept {
  return impl_->receiver.receive(buffer, from, timeout);
}

}  // namespace wherry
