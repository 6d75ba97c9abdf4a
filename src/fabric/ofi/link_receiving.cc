// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "fabric/check.hpp"
#include "fabric/ofi/link.hpp"
#include "fabric/ofi/link_message.hpp"

namespace wherry::fabric::ofi {

using layout::LinkKind;
using layout::LinkMessage;

void Link::on_word(std::uint64_t data) {
  const std::uint8_t number = layout::slot_of(data);
  if (number >= peer_slots_.size()) {
    break_off("a word for a place that was never named");
    return;
  }
  const Slot& slot = peer_slots_[number];
  store(sides_.segment.data() + slot.offset, layout::slot_value(data), slot.bell);
}

void Link::on_message(const LinkMessage& message) {
  std::optional<Bell> bell;
  switch (static_cast<LinkKind>(message.kind)) {
    case LinkKind::welcome:
      on_welcome(message);
      return;
    case LinkKind::slot:
      on_slot(message);
      return;
    case LinkKind::word:
      if (!is_word(message.a, sides_.segment.size()) || !parse_bell(message.number, bell)) break;
      store(sides_.segment.data() + message.a, message.b, bell);
      return;
    case LinkKind::region_word:
      on_region_word(message);
      return;
    case LinkKind::flush:
      if (!may_answer()) break;
      controls_.push_back(message_of(LinkKind::flushed, 0, message.a));
      return;
    case LinkKind::flushed:
      if (message.a > flush_number_) break;
      flushed_ = std::max(flushed_, message.a);
      changed_.notify_all();
      return;
    case LinkKind::reach:
      if (!may_answer()) break;
      on_reach(message);
      return;
    case LinkKind::reached:
      on_reached(message);
      return;
  }
  break_off("a message that makes no sense");
}

void Link::on_welcome(const LinkMessage& message) {
  if (peer_ || message.number != layout::kLinkVersion || message.c != sides_.peer_bytes) {
    break_off("a welcome of another version or of another segment");
    return;
  }
  peer_ = RemotePlace{message.a, message.b};
  if (opening_ != nullptr && connected_) opening_->notify();
  changed_.notify_all();
}

void Link::on_slot(const LinkMessage& message) {
  Slot slot{.offset = message.a, .bell = {}};
  if (message.number != peer_slots_.size() || message.number >= layout::kSlots ||
      !is_word(message.a, sides_.segment.size()) || !parse_bell(message.b, slot.bell)) {
    break_off("a place outside the segment");
    return;
  }
  peer_slots_.push_back(slot);
}

void Link::on_region_word(const LinkMessage& message) {
  std::byte* const at = exposed_ ? exposed_->word_at(message.c, message.a) : nullptr;
  if (at == nullptr) {
    break_off("a word outside exposed memory");
    return;
  }
  store(at, message.b, {});
}

void Link::on_reach(const LinkMessage& message) {
  RemotePlace place;
  const int error = exposed_ ? exposed_->find({message.a, message.b}, message.c, place) : ENXIO;
  controls_.push_back(
      message_of(LinkKind::reached, message.number, place.key, place.address, static_cast<std::uint64_t>(error)));
}

void Link::on_reached(const LinkMessage& message) {
  const auto asked = reaches_.find(message.number);
  if (asked == reaches_.end()) return;  // it came too late
  const bool is_errno = message.c < 4096;
  asked->second = Answer{{message.a, message.b}, is_errno ? static_cast<int>(message.c) : EPROTO};
  changed_.notify_all();
}

/// The peer's word, whole and behind what it put before.
void Link::store(std::byte* at, std::uint64_t value, std::optional<Bell> bell) {
  reinterpret_cast<wherry::layout::Word*>(at)->store(value, std::memory_order_release);  // SIGNAL
  if (!bell) return;
  arch::publish_then_look();  // SLEEP: pairs with the fence in arm()
  const std::uint64_t epoch = epochs_[index(*bell)].load(std::memory_order_acquire);  // SLEEP
  std::uint64_t& rung = rung_[index(*bell)];
  if ((epoch & 1) == 0 || epoch == rung) return;
  rung = epoch;
  bells_[index(*bell)].notify();
}

void Link::break_off(const char* reason) {
  if (!std::exchange(broken_, true)) log::write(log::Level::error, std::string("ofi: a peer sent ") + reason);
}

void Link::arm(Bell bell) {
  silence(bell);
  auto& epoch = epochs_[index(bell)];
  epoch.store((epoch.load(std::memory_order_relaxed) + 1) | 1, std::memory_order_release);  // SLEEP
  arch::publish_then_look();  // SLEEP: pairs with the fence in store()
}

void Link::disarm(Bell bell) {
  auto& epoch = epochs_[index(bell)];
  epoch.store((epoch.load(std::memory_order_relaxed) + 1) & ~std::uint64_t{1}, std::memory_order_release);  // SLEEP
}

bool Link::silence(Bell bell) {
  const bool rung = bells_[index(bell)].silence();
  // Death rings once and for all. `finish` says that it is gone before it rings.
  if (is_gone()) notify_self(bell);
  return rung;
}

Wake Link::wait(Bell bell, const Deadline& deadline) {
  for (;;) {
    if (is_gone()) return Wake::gone;
    if (silence(bell)) return is_gone() ? Wake::gone : Wake::rung;
    if (!bells_[index(bell)].await(deadline)) return Wake::timeout;
  }
}

}  // namespace wherry::fabric::ofi
