// SPDX-License-Identifier: Apache-2.0
#include "mailbox/outgoing.hpp"

#include <algorithm>
#include <cerrno>

#include "arch/shared_copy.hpp"

namespace wherry::mailbox {
namespace {

using fabric::Bell;

// A message is published in pieces: the receiver copies one out while the next is copied in.
constexpr std::size_t kMostPiece = std::size_t{64} << 10;
// On load/store fabrics a message of up to kPieces * kMostPiece bytes has kPieces pieces, or pieces of kLeastPiece: so
// the two copies of a single message overlap. Each piece costs both sides a cache line; on put fabrics, a put.
constexpr std::uint64_t kPieces = 8;
constexpr std::size_t kLeastPiece = std::size_t{8} << 10;

std::span<const std::byte> bytes_of(const iovec& piece) {
  return {static_cast<const std::byte*>(piece.iov_base), piece.iov_len};
}

/// Fills `to` with the first bytes of the pieces, which have at least that many.
void gather(std::span<const iovec> pieces, std::span<std::byte> to) {
  for (const iovec& piece : pieces) {
    const auto part = bytes_of(piece).first(std::min(piece.iov_len, to.size()));
    arch::copy_into_shared(to.data(), part.data(), part.size());
    to = to.subspan(part.size());
  }
}

}  // namespace

Outgoing::Outgoing(fabric::Connection& connection, std::size_t overflow, std::size_t early)
    : words_(connection, early), own_(own_words(connection)), most_overflow_(overflow) {
  if (!words_.mapped()) staging_memory_ = words_.staging();
  staging_ = staging_memory_.get();
  writer_ = SectionWriter(words_.mapped() ? words_.section() : staging_, &own_.head, &own_.seen);
}

bool Outgoing::adopt() noexcept {
  if (!writer_.section_drained()) return false;
  const Grant grant = Grant::from(own_.grant.load(std::memory_order_acquire));  // MAILBOX-GRANT
  if (grant.lines == 0 || grant.bytes() > words_.section_bytes()) {
    broken_ = true;
    return false;
  }
  end_overflow();
  // The pages of the overflow, and those before it, are freed when this side leaves it.
  if (may_overflow() && !overflows()) give_back_pages(words_.section(), grant.bytes(), grant_.bytes());
  grant_ = grant;
  ++changes_;
  piece_ = std::clamp(grant.bytes() / 4, layout::kMailboxLine, kMostPiece);
  writer_.resize(grant.bytes());
  // Tells the owner whether it should return the pages beyond the new size. Without an overflow the owner always does.
  const std::uint64_t kept = words_.mapped() ? 0 : layout::kMailboxKeptPages;
  const std::uint64_t place = overflows() ? layout::kMailboxInOverflow : 0;
  words_.store(WHERRY_MAILBOX_WORD(ack), grant.epoch | kept | place, Bell::data);
  return true;
}

void Outgoing::leave_overflow() noexcept {
  // The pages are freed before anything is published: the next bytes may lie in them.
  give_back_pages(words_.section(), grant_.bytes(), writer_.reach());
  writer_.restart();
  words_.store_overflow(0);
}

/// Whether the section alone takes seven eighths of the overflow's bytes, whatever credit the receiver owes. The
/// section is in the caches, and its credit is returned less often. So this side then waits for room in the section.
bool Outgoing::section_replaces_overflow() const noexcept {
  return grant_.bytes() >= most_overflow_ + most_overflow_ / 4;
}

Outgoing::Placement Outgoing::find_place(std::uint64_t bytes) noexcept {
  const bool granted = !grant_waits() || adopt();
  end_overflow();
  const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(need(bytes), layout::kMailboxLongest));
  // The overflow may be used while a grant waits for the section to drain: so that is not delayed.
  const bool usable = granted || writer_.overflows();
  if (usable && writer_.room(most) >= most) return Placement::here;
  if (writer_.overflows() || broken() || (granted && section_replaces_overflow())) return Placement::none;
  return overflow_bytes() >= most ? Placement::overflow : Placement::none;
}

std::size_t Outgoing::room_in_section(std::size_t least) noexcept {
  if (rest_ != 0 || (grant_waits() && !adopt())) return 0;
  end_overflow();
  if (writer_.overflows()) return 0;
  const std::size_t needed = std::min(least + kLeast, writer_.capacity());
  const std::size_t room = writer_.room(needed);
  return room >= needed && room > kLeast ? room - kLeast : 0;
}

Result Outgoing::try_send_whole(Mailbox::Outgoing& message, std::uint64_t seen) noexcept {
  if (message.taken != 0) return Result::failure(EINVAL);
  if (message.bytes <= std::min<std::uint64_t>(piece_, kLeastPiece)) {
    const auto bytes = static_cast<std::size_t>(message.bytes);
    if (send_at_once(bytes, seen, [&](std::byte* to) { gather(message.pieces, {to, bytes}); })) {
      message.taken = bytes;
      return Result::moved(bytes);
    }
  }
  const Placement place = rest_ != 0 ? Placement::none : find_place(message.bytes);
  if (place == Placement::none) return broken() ? Result::failure(EPROTO) : Result::blocked();
  if (place == Placement::overflow) {
    words_.store_overflow(writer_.tail() + 1);
    writer_.overflow(overflow_bytes());
  }
  return write(message, seen);
}

/// Writes the length of a message. False: there is no room for it and one byte, or for all of a message shorter than
/// that.
bool Outgoing::begin(const Mailbox::Outgoing& message) noexcept {
  const auto least = static_cast<std::size_t>(std::min<std::uint64_t>(need(message.bytes), kLeast));
  if (writer_.room(least) < least) return false;
  const std::size_t padding = padding_at(writer_.tail());
  if (leaves_first_page(message.bytes) && words_.mapped() && writer_.drained()) {
    writer_.restart();
    const std::uint64_t at = writer_.tail() + padding;
    words_.store_inlined(layout::mailbox_inlined(at, layout::kMailboxRestart));
    inlined_end_ = at + 1;
  }
  writer_.skip(padding);
  rest_ = message.bytes;
  writer_.write(std::as_bytes(std::span(&rest_, 1)));
  return true;
}

Result Outgoing::try_send(Mailbox::Outgoing& message, std::uint64_t seen) noexcept {
  if (rest_ == 0 ? message.taken != 0 : message.bytes - message.taken != rest_) return Result::failure(EINVAL);
  if (grant_waits() && !adopt()) return broken() ? Result::failure(EPROTO) : Result::blocked();
  end_overflow();
  return write(message, seen);
}

/// Most bytes of a message of `bytes` to publish at once.
std::size_t Outgoing::piece_of(std::uint64_t bytes) const noexcept {
  const std::size_t most = writer_.overflows() ? kMostPiece : piece_;
  if (!words_.mapped()) return most;
  return std::min(most, static_cast<std::size_t>(std::clamp<std::uint64_t>(bytes / kPieces, kLeastPiece, kMostPiece)));
}

Result Outgoing::write(Mailbox::Outgoing& message, std::uint64_t seen) noexcept {
  seen_ = seen;
  const bool begins = rest_ == 0;
  if (begins && fits_inlined(message.bytes)) {
    const auto bytes = static_cast<std::size_t>(message.bytes);
    message.taken = bytes;
    gather(message.pieces, {words_.inlined_bytes(), bytes});
    publish_inlined(bytes, seen);
    return Result::moved(bytes);
  }
  if (begins && !begin(message)) return broken() ? Result::failure(EPROTO) : Result::blocked();
  std::size_t moved = 0;
  const std::size_t piece = piece_of(message.bytes);
  // At most about one section per call: otherwise a receiver that keeps pace would hold this call until the end of a
  // long message.
  while (rest_ != 0 && moved < writer_.capacity()) {
    const std::size_t room = writer_.room(static_cast<std::size_t>(std::min<std::uint64_t>(rest_, piece)));
    const std::size_t n = copy(message.pieces, message.taken, std::min(room, piece));
    if (n == 0) break;
    message.taken += n;
    rest_ -= n;
    moved += n;
    if (!publish()) return Result::failure(ECONNRESET, moved);
  }
  if (writer_.unpublished_bytes() != 0 && !publish()) return Result::failure(ECONNRESET, moved);
  if (writer_.broken()) return Result::failure(EPROTO, moved);
  return moved != 0 || message.bytes == 0 ? Result::moved(moved) : Result::blocked();
}

/// Copies at most `most` bytes of the message, beginning at offset `skip`. Returns how many.
std::size_t Outgoing::copy(std::span<const iovec> pieces, std::uint64_t skip, std::size_t most) noexcept {
  std::size_t copied = 0;
  for (const iovec& piece : pieces) {
    if (skip >= piece.iov_len) {
      skip -= piece.iov_len;
      continue;
    }
    const auto rest = bytes_of(piece).subspan(static_cast<std::size_t>(skip));
    skip = 0;
    const auto part = rest.first(std::min(rest.size(), most - copied));
    writer_.write(part);
    copied += part.size();
    if (copied == most) break;
  }
  return copied;
}

bool Outgoing::publish() noexcept {
  if (!words_.mapped()) {
    const Regions written = writer_.unpublished();
    const auto place = static_cast<std::size_t>(written.first.data() - staging_);
    return words_.put(place, written, writer_.publish());
  }
  store_seen(seen_);
  return words_.store(WHERRY_MAILBOX_WORD(tail), writer_.publish(), Bell::data);
}

}  // namespace wherry::mailbox
