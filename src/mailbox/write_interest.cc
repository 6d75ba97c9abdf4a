// SPDX-License-Identifier: Apache-2.0
#include "mailbox/write_interest.hpp"

#include <algorithm>

namespace wherry::mailbox {
namespace {

bool has_wanted_room(Pair& pair) noexcept {
  const std::uint64_t bytes = pair.wanted_room.bytes;
  switch (pair.wanted_room.place) {
    case WantedRoom::Place::section:
      return pair.out->has_room_in_section(static_cast<std::size_t>(bytes));
    case WantedRoom::Place::whole:
      return pair.out->has_room_for(bytes);
    case WantedRoom::Place::any:
      break;
  }
  return pair.out->has_room();
}

}  // namespace

void WriteInterest::reserve(std::size_t pairs) {
  waiting_.reserve(pairs);
  writable_.reserve(pairs);
}

void WriteInterest::add(Pair& pair, WantedRoom wanted) noexcept {
  pair.wanted_room = wanted;
  if (pair.wants_room || pair.state == State::lost) return;
  pair.wants_room = true;
  waiting_.push_back(&pair);
}

void WriteInterest::remove(Pair& pair) noexcept {
  pair.wants_room = false;
  std::erase(waiting_, &pair);
}

bool WriteInterest::check(Pair& pair) noexcept {
  if (!pair.wants_room || !pair.is_open() || &pair == blocked_) return false;
  const bool ends = pair.gone || pair.in->finished() != 0;
  if (!ends && !has_wanted_room(pair)) return false;
  set_writable(pair);
  return true;
}

void WriteInterest::set_writable(Pair& pair) noexcept {
  remove(pair);
  // A pair that a wait has already reported is reported again.
  forget(pair.number);
  writable_.push_back(pair.number);
}

bool WriteInterest::check_all() noexcept {
  bool any = false;
  for (std::size_t i = waiting_.size(); i > 0; --i) any |= check(*waiting_[i - 1]);
  return any;
}

void WriteInterest::arm() noexcept {
  for (Pair* pair : waiting_) {
    if (pair->is_open()) pair->connection->arm(fabric::Bell::space);
  }
}

void WriteInterest::on_loss(Pair& pair) noexcept {
  if (pair.wants_room) set_writable(pair);
}

void WriteInterest::forget(Mailbox::Peer peer) noexcept {
  const auto place = std::find(writable_.begin(), writable_.end(), peer);
  if (place == writable_.end()) return;
  if (static_cast<std::size_t>(place - writable_.begin()) < reported_) --reported_;
  writable_.erase(place);
}

std::size_t WriteInterest::take_writable(std::span<Mailbox::Peer> into) noexcept {
  const std::size_t count = std::min(into.size(), writable_.size());
  std::copy_n(writable_.begin(), count, into.begin());
  writable_.erase(writable_.begin(), writable_.begin() + static_cast<std::ptrdiff_t>(count));
  reported_ -= std::min(reported_, count);
  return count;
}

void WriteInterest::drop_reported() noexcept {
  writable_.erase(writable_.begin(), writable_.begin() + static_cast<std::ptrdiff_t>(reported_));
  reported_ = 0;
}

}  // namespace wherry::mailbox
