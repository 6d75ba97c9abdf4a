// SPDX-License-Identifier: Apache-2.0
#include "mailbox/sender.hpp"

#include <array>

#include "mailbox/impl.hpp"

namespace wherry::mailbox {
namespace {

/// Bytes that a message takes beside its payload: its length and padding.
constexpr std::size_t kAroundMessage = 16;

}  // namespace

Result Sender::try_send(Mailbox::Peer to, Mailbox::Outgoing& message) noexcept {
  Pair* pair = pairs_.find(to);
  if (pair != nullptr && pair->is_open()) [[likely]]
    return send_open(*pair, message);
  return refuse(pair);
}

/// Returns the result of a send to a pair that is not open.
Result Sender::refuse(Pair* pair) noexcept {
  if (pair == nullptr) return Result::failure(EINVAL);
  if (pair->state == State::lost) return Result::failure(pair->error == 0 ? EPIPE : pair->error);
  want_room(*pair);
  return Result::blocked();
}

Result Sender::send_open(Pair& pair, Mailbox::Outgoing& message) noexcept {
  if (const int error = ending_of(pair)) return Result::failure(error);
  const Result result = pair.out->try_send(message, pair.in->piggyback_credit());
  if (!result.failed() && (result.would_block() || message.taken != message.bytes)) want_room(pair);
  return result;
}

Result Sender::try_send_whole(Mailbox::Peer to, Mailbox::Outgoing& message) noexcept {
  Pair* pair = pairs_.find(to);
  if (pair != nullptr && pair->is_open()) [[likely]]
    return send_open_whole(*pair, message);
  if (pair != nullptr && connector_.send_early(*pair, message)) {
    return Result::moved(static_cast<std::size_t>(message.bytes));
  }
  // The peer may have accepted this side meanwhile.
  return pair != nullptr && pair->is_open() ? send_open_whole(*pair, message) : refuse(pair);
}

Result Sender::send_open_whole(Pair& pair, Mailbox::Outgoing& message) noexcept {
  if (const int error = ending_of(pair)) return Result::failure(error);
  const Result result = pair.out->try_send_whole(message, pair.in->piggyback_credit());
  // While the overflow is in use the pair must be active: its space bell is armed only from there.
  if (pair.out->overflows()) [[unlikely]]
    engine_.activate(pair);
  if (!result.would_block()) return result;
  if (connector_.send_early(pair, message)) return Result::moved(static_cast<std::size_t>(message.bytes));
  want_room(pair, {WantedRoom::Place::whole, message.bytes});
  return result;
}

Result Sender::try_send(Mailbox::Peer to, std::span<const std::byte> head, std::span<const std::byte> rest) noexcept {
  Pair* pair = pairs_.find(to);
  if (pair != nullptr && pair->is_open()) {
    const std::size_t bytes = head.size() + rest.size();
    if (bytes + kAroundMessage > pair->peers_header) return Result::failure(EMSGSIZE);
    if (ending_of(*pair) == 0 && pair->out->try_send_short(head, rest, pair->in->piggyback_credit())) [[likely]] {
      return Result::moved(bytes);
    }
  }
  return send_not_inlined(to, head, rest);
}

Result Sender::send_not_inlined(Mailbox::Peer to, std::span<const std::byte> head,
                                std::span<const std::byte> rest) noexcept {
  Pair* pair = pairs_.find_open(to);
  const std::array<iovec, 2> pieces{iovec{const_cast<std::byte*>(head.data()), head.size()},
                                    iovec{const_cast<std::byte*>(rest.data()), rest.size()}};
  const std::size_t bytes = head.size() + rest.size();
  Mailbox::Outgoing outgoing{.pieces = pieces, .bytes = bytes};
  if (pair == nullptr) return try_send_whole(to, outgoing);
  if (pair->out->may_overflow()) return send_open_whole(*pair, outgoing);
  if (pair->out->has_room(bytes + kAroundMessage)) return send_open(*pair, outgoing);
  if (connector_.send_early(*pair, outgoing)) return Result::moved(bytes);
  want_room(*pair);
  return Result::blocked();
}

std::size_t Sender::room(Mailbox::Peer to, std::size_t least) noexcept {
  Pair* pair = pairs_.find(to);
  if (pair == nullptr) return 0;
  const std::size_t room = pair->is_open() ? pair->out->room_in_section(least) : 0;
  if (room == 0) want_room(*pair, {WantedRoom::Place::section, least});
  return room;
}

void Sender::want_room(Pair& pair, WantedRoom wanted) noexcept {
  engine_.poll_kernel_after(1);
  write_interest_.add(pair, wanted);
  waiter_.signal_descriptor();  // the poll may have taken a bell
}

Result Sender::send(Mailbox::Peer to, Mailbox::Outgoing& message, const Timeout& timeout) noexcept {
  const fabric::Deadline deadline = stream::deadline_of(timeout);
  std::size_t total = 0;
  while (true) {
    const Result result = try_send(to, message);
    total += result.bytes;
    if (result.failed()) return Result::failure(result.error, total);
    if (result.ok() && message.taken == message.bytes) return Result::moved(total);
    if (!result.ok() && !wait_for_room(*pairs_.find(to), deadline)) return Result::failure(ETIMEDOUT, total);
  }
}

bool Sender::wait_for_room(Pair& pair, const fabric::Deadline& deadline) noexcept {
  const auto ready = [&] {
    if (!pair.is_open()) return pair.state == State::lost;
    return pair.gone || pair.in->finished() != 0 || pair.out->has_room();
  };
  // The pair keeps its write interest until this ends, so its bell stays armed: a grant may take room away again.
  write_interest_.set_blocked(&pair);
  const bool has = waiter_.wait_for_pair(ready, fabric::Bell::space, deadline);
  write_interest_.set_blocked(nullptr);
  if (has && pair.wants_room) write_interest_.remove(pair);
  return has;
}

}  // namespace wherry::mailbox

namespace wherry {

Result Mailbox::try_send(Peer to, Outgoing& message) noexcept { return impl_->sender.try_send(to, message); }
Result Mailbox::try_send(Peer to, std::span<const std::byte> message) noexcept {
  return impl_->sender.try_send(to, message, {});
}
Result Mailbox::try_send(Peer to, std::span<const std::byte> head, std::span<const std::byte> rest) noexcept {
  return impl_->sender.try_send(to, head, rest);
}
std::size_t Mailbox::room(Peer to, std::size_t least) noexcept { return impl_->sender.room(to, least); }
Result Mailbox::try_send_whole(Peer to, Outgoing& message) noexcept {
  return impl_->sender.try_send_whole(to, message);
}
Result Mailbox::send(Peer to, Outgoing& message, Timeout timeout) noexcept {
  return impl_->sender.send(to, message, timeout);
}
Result Mailbox::send(Peer to, std::span<const std::byte> message, Timeout timeout) noexcept {
  const iovec piece{const_cast<std::byte*>(message.data()), message.size()};
  Outgoing outgoing{.pieces = std::span(&piece, 1), .bytes = message.size()};
  return impl_->sender.send(to, outgoing, timeout);
}
std::size_t Mailbox::writable(std::span<Peer> into) noexcept { return impl_->write_interest.take_writable(into); }

}  // namespace wherry
