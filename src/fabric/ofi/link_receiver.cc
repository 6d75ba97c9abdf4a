// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/link_receiver.hpp"

#include <cerrno>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "fabric/check.hpp"
#include "fabric/ofi/link_message.hpp"

namespace wherry::fabric::ofi {

using layout::LinkKind;
using layout::LinkMessage;

void LinkReceiver::start(const Endpoint& endpoint) {
  if (sides_.exposes) exposed_.emplace(endpoint);
}

std::uint32_t LinkReceiver::ask() {
  questions_.emplace(++last_question_, std::nullopt);
  return last_question_;
}

void LinkReceiver::on_sent() {
  if (sender_.on_sent()) changed_.notify_all();
}

void LinkReceiver::on_read() {
  sender_.on_read();
  changed_.notify_all();
}

void LinkReceiver::on_word(std::uint64_t data) {
  if (broken_) return;
  const PeerSlots::Slot* const slot = slots_.find(layout::slot_of(data));
  if (slot == nullptr) {
    break_off("a word for a place that was never named");
    return;
  }
  store(sides_.segment.data() + slot->offset, layout::slot_value(data), slot->bell);
}

void LinkReceiver::on_message(const LinkMessage& message) {
  if (broken_) return;
  std::optional<Bell> bell;
  switch (static_cast<LinkKind>(message.kind)) {
    case LinkKind::welcome:
      on_welcome(message);
      return;
    case LinkKind::slot:
      if (!slots_.add(message, sides_.segment.size())) break;
      return;
    case LinkKind::word:
      if (!is_word(message.a, sides_.segment.size()) || !parse_bell(message.number, bell)) break;
      store(sides_.segment.data() + message.a, message.b, bell);
      return;
    case LinkKind::region_word:
      on_region_word(message);
      return;
    case LinkKind::flush:
      if (!sender_.answer(message_of(LinkKind::flushed, 0, message.a))) break;
      return;
    case LinkKind::flushed:
      if (!sender_.on_flushed(message.a)) break;
      changed_.notify_all();
      return;
    case LinkKind::reach:
      on_reach(message);
      return;
    case LinkKind::reached:
      on_reached(message);
      return;
  }
  break_off("a message that makes no sense");
}

void LinkReceiver::on_welcome(const LinkMessage& message) {
  if (peer_ || message.number != layout::kLinkVersion || message.c != sides_.peer_bytes) {
    break_off("a welcome of another version or of another segment");
    return;
  }
  peer_ = RemotePlace{message.a, message.b};
  changed_.notify_all();
}

void LinkReceiver::on_region_word(const LinkMessage& message) {
  std::byte* const at = exposed_ ? exposed_->word_at(message.c, message.a) : nullptr;
  if (at == nullptr) return break_off("a word outside exposed memory");
  store(at, message.b, {});
}

void LinkReceiver::on_reach(const LinkMessage& message) {
  RemotePlace place;
  const int error = exposed_ ? exposed_->find({message.a, message.b}, message.c, place) : ENXIO;
  const auto code = static_cast<std::uint64_t>(error);
  if (!sender_.answer(message_of(LinkKind::reached, message.number, place.key, place.address, code)))
    break_off("questions, and takes no answers");
}

void LinkReceiver::on_reached(const LinkMessage& message) {
  const auto asked = questions_.find(message.number);
  if (asked == questions_.end()) return;  // the answer came after the timeout
  const bool is_errno = message.c < 4096;
  asked->second = Answer{{message.a, message.b}, is_errno ? static_cast<int>(message.c) : EPROTO};
  changed_.notify_all();
}

/// Stores a word of the peer, after everything that the peer put before.
void LinkReceiver::store(std::byte* at, std::uint64_t value, std::optional<Bell> bell) {
  reinterpret_cast<wherry::layout::Word*>(at)->store(value, std::memory_order_release);  // SIGNAL
  if (bell) bells_.ring(*bell);
}

void LinkReceiver::break_off(const char* reason) {
  if (!std::exchange(broken_, true)) log::write(log::Level::warning, std::string("ofi: a peer sent ") + reason);
}

}  // namespace wherry::fabric::ofi
