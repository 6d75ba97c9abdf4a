// SPDX-License-Identifier: Apache-2.0
// Messages: into the sections in other mailboxes, and out of those in this one.
#include <algorithm>
#include <cerrno>

#include "arch/pause.hpp"
#include "mailbox/impl.hpp"

namespace wherry {
namespace {

using fabric::Bell;

/// A sender that has much to say goes on for so many pieces while others wait.
constexpr unsigned kPiecesPerTurn = 8;
/// As many as a round trip between two cores takes.
constexpr unsigned kLooksWithoutPause = 16;
/// A message of this many bytes less than a section fits whole: its length and padding take the rest.
constexpr std::size_t kAroundMessage = 16;

}  // namespace

Result Mailbox::Impl::try_send(Peer to, Outgoing& message) noexcept {
  Pair* pair = find(to);
  if (pair == nullptr) return Result::failure(EINVAL);
  if (pair->is_open()) [[likely]]
    return send_open(*pair, message);
  if (pair->state == State::lost) return Result::failure(pair->error == 0 ? EPIPE : pair->error);
  want_room(*pair);
  return Result::blocked();
}

Result Mailbox::Impl::send_open(Pair& pair, Outgoing& message) noexcept {
  if (pair.in->finished() != 0) return Result::failure(EPIPE);
  if (pair.gone) return Result::failure(ECONNRESET);
  const Result result = pair.out->try_send(message, pair.in->tell());
  if (!result.failed() && (result.would_block() || message.taken != message.bytes)) want_room(pair);
  return result;
}

Result Mailbox::Impl::try_send_whole(Peer to, Outgoing& message) noexcept {
  Pair* pair = find(to);
  if (pair != nullptr && pair->is_open()) [[likely]]
    return send_open_whole(*pair, message);
  if (pair != nullptr && send_early(*pair, message)) return Result::moved(static_cast<std::size_t>(message.bytes));
  // The peer may have let this side in meanwhile.
  return pair != nullptr && pair->is_open() ? send_open_whole(*pair, message) : try_send(to, message);
}

Result Mailbox::Impl::send_open_whole(Pair& pair, Outgoing& message) noexcept {
  if (pair.in->finished() != 0) return Result::failure(EPIPE);
  if (pair.gone) return Result::failure(ECONNRESET);
  const Result result = pair.out->try_send_whole(message, pair.in->tell());
  if (!result.would_block()) return result;
  if (send_early(pair, message)) return Result::moved(static_cast<std::size_t>(message.bytes));
  want_room(pair, message.bytes);
  return result;
}

Result Mailbox::Impl::try_send(Peer to, std::span<const std::byte> message) noexcept {
  Pair* pair = find(to);
  if (pair != nullptr && pair->is_open()) {
    if (message.size() + kAroundMessage > pair->peers_header) return Result::failure(EMSGSIZE);
    if (pair->in->finished() == 0 && !pair->gone && pair->out->try_send_inlined(message, pair->in->tell())) [[likely]] {
      return Result::moved(message.size());
    }
  }
  const iovec piece{const_cast<std::byte*>(message.data()), message.size()};
  Outgoing outgoing{.pieces = std::span(&piece, 1), .bytes = message.size()};
  if (pair == nullptr || !pair->is_open()) return try_send_whole(to, outgoing);
  if (pair->out->may_overflow()) return send_open_whole(*pair, outgoing);
  if (pair->out->has_room(message.size() + kAroundMessage)) return send_open(*pair, outgoing);
  if (send_early(*pair, outgoing)) return Result::moved(message.size());
  want_room(*pair);
  return Result::blocked();
}

void Mailbox::Impl::want_room(Pair& pair, std::optional<std::uint64_t> whole) noexcept {
  if (asking_is_due(1)) ask();
  pair.wanted = whole;
  if (pair.wants_room || pair.state == State::lost) return;
  pair.wants_room = true;
  wanting_.push_back(&pair);
}

void Mailbox::Impl::stop_wanting(Pair& pair) noexcept {
  pair.wants_room = false;
  std::erase(wanting_, &pair);
}

bool Mailbox::Impl::check_room(Pair& pair) noexcept {
  if (!pair.wants_room || !pair.is_open() || &pair == sending_) return false;
  const bool ends = pair.gone || pair.in->finished() != 0;
  if (!ends && !(pair.wanted ? pair.out->has_room_for(*pair.wanted) : pair.out->has_room())) return false;
  stop_wanting(pair);
  if (std::find(writable_.begin(), writable_.end(), pair.number) == writable_.end()) writable_.push_back(pair.number);
  return true;
}

std::size_t Mailbox::Impl::writable(std::span<Peer> into) noexcept {
  const std::size_t count = std::min(into.size(), writable_.size());
  std::copy_n(writable_.begin(), count, into.begin());
  writable_.erase(writable_.begin(), writable_.begin() + static_cast<std::ptrdiff_t>(count));
  told_writable_ -= std::min(told_writable_, count);
  return count;
}

Result Mailbox::Impl::send(Peer to, Outgoing& message, const Timeout& timeout) noexcept {
  const fabric::Deadline deadline = stream::deadline_of(timeout);
  std::size_t total = 0;
  while (true) {
    const Result result = try_send(to, message);
    total += result.bytes;
    if (result.failed()) return Result::failure(result.error, total);
    if (result.ok() && message.taken == message.bytes) return Result::moved(total);
    Pair& pair = *pairs_[to];
    if (!result.ok() && !wait_for_room(pair, deadline)) return Result::failure(ETIMEDOUT, total);
  }
}

/// Waits for one peer, whatever the others do. False: the deadline passed.
template <class Ready>
bool Mailbox::Impl::wait_until(Ready&& ready, stream::SpinBudget& spin, Bell bell,
                               const fabric::Deadline& deadline) noexcept {
  while (true) {
    if (spin.look(ready, deadline)) return true;
    (void)serve_active();
    ask();
    if (ready()) return true;
    if (stream::has_passed(deadline)) return false;
    // Pairs that have unread messages stay active; but their peers' grants must end this sleep.
    for (Pair* active : bells_.active()) {
      active->connection->arm(Bell::data);
      if (active->out->grant_waits()) active->connection->arm(Bell::space);
    }
    arm_for_room();
    (void)serve_active();
    if (ready()) return true;
    doze(deadline);
    if (woken_ != nullptr) spin.learn(*woken_->connection, bell);
  }
}

bool Mailbox::Impl::wait_for_room(Pair& pair, const fabric::Deadline& deadline) noexcept {
  const auto ready = [&] {
    if (!pair.is_open()) return pair.state == State::lost;
    return pair.gone || pair.in->finished() != 0 || pair.out->has_room();
  };
  // It stays among those that want room, and so armed, until this ends: a grant may take away room that was there.
  sending_ = &pair;
  const bool has = wait_until(ready, spin_for_room_, Bell::space, deadline);
  sending_ = nullptr;
  if (has && pair.wants_room) stop_wanting(pair);
  return has;
}

/// For the rest of the message that try_receive has begun.
bool Mailbox::Impl::wait_for_rest(const fabric::Deadline& deadline) noexcept {
  bells_.activate(*pairs_[whole_from_]);
  const auto ready = [&] {
    Pair* pair = find_open(whole_from_);
    return pair == nullptr || pair->in->waiting() || pair->gone || pair->in->finished() != 0;
  };
  return wait_until(ready, spin_, Bell::data, deadline);
}

Result Mailbox::Impl::try_peek(Piece& piece) noexcept {
  if (asking_is_due(1)) ask();
  if (!early_.empty()) [[unlikely]] {
    find_early(piece);
    return Result::moved(piece.bytes.size());
  }
  auto& active = bells_.active();
  for (std::size_t left = active.size(); left > 0 && !active.empty(); --left) {
    Pair& pair = *active.front();
    if (is_silent(pair)) {
      ++pair.vain;
    } else {
      // Bytes are found before all else that may have come: a death, or a grant unless it waits already.
      if (!pair.out->grant_waits() && find_in(pair, piece)) return Result::moved(piece.bytes.size());
      const bool served = serve(pair);
      if (!pair.is_open()) continue;
      if (served && find_in(pair, piece)) return Result::moved(piece.bytes.size());
    }
    pair.turn = 0;
    if (active.size() > 1) bells_.end_turn(pair);
    if (pair.vain > mailbox::kLooksInVain) rest_if_quiet(pair);
  }
  // A program that polls calls again at once, and the peer may run on the same core's other thread. A wait of a few
  // looks is an answer that is on its way, and a pause takes as long as a line from another core.
  if (++vain_looks_ > kLooksWithoutPause) arch::pause();
  return Result::blocked();
}

bool Mailbox::Impl::find_in(Pair& pair, Piece& piece) noexcept {
  if (!pair.in->find(piece)) return false;
  pair.vain = vain_looks_ = 0;
  piece.from = pair.number;
  return true;
}

void Mailbox::Impl::consume(const Piece& piece, std::size_t bytes) noexcept {
  if (!early_.empty()) [[unlikely]] {
    Pair* const from = find(piece.from);
    if (from != nullptr && from->early_received != nullptr) return consume_early(*from, bytes);
  }
  Pair* pair = find_open(piece.from);
  if (pair == nullptr || !pair->in->consume(bytes)) return;
  if (pair->in->take_agreement()) agreed(*pair);
  count(*pair, bytes);
  if (++pair->turn >= kPiecesPerTurn && pair->active) {
    pair->turn = 0;
    bells_.end_turn(*pair);
  }
}

/// Whether serve would find nothing, and change nothing but `vain`.
bool Mailbox::Impl::is_silent(const Pair& pair) noexcept {
  return pair.in->is_silent() && !pair.out->grant_waits() && !pair.out->broken() && !pair.gone && !pair.wants_room;
}

/// As try_peek, but of the message that try_receive has begun.
Result Mailbox::Impl::next_piece(Piece& piece) noexcept {
  Pair* pair = find_open(whole_from_);
  if (pair == nullptr) return try_peek(piece);
  if (!pair->in->find(piece)) {
    if (asking_is_due(1)) ask();
    (void)serve(*pair);
    return Result::blocked();
  }
  piece.from = whole_from_;
  return Result::moved(piece.bytes.size());
}

Result Mailbox::Impl::try_receive(std::span<std::byte> buffer, Peer& from) noexcept {
  while (true) {
    Piece piece;
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
    whole_from_ = whole ? kNoPeer : piece.from;
    consume(piece, piece.bytes.size());
    if (!whole) continue;
    from = piece.from;
    return Result::moved(length);
  }
}

Result Mailbox::Impl::receive(std::span<std::byte> buffer, Peer& from, const Timeout& timeout) noexcept {
  const fabric::Deadline deadline = stream::deadline_of(timeout);
  while (true) {
    const Result result = try_receive(buffer, from);
    if (!result.would_block()) return result;
    if (!losses_.empty()) return result;
    const bool found = whole_from_ == kNoPeer ? wait_for(News::received, deadline) : wait_for_rest(deadline);
    if (!found) return Result::failure(ETIMEDOUT);
    if (interrupted_.exchange(false, std::memory_order_relaxed)) return try_receive(buffer, from);
  }
}

}  // namespace wherry
