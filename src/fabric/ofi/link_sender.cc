// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/link_sender.hpp"

#include <algorithm>
#include <utility>

namespace wherry::fabric::ofi {

using layout::LinkKind;

std::size_t LinkSender::put(std::uint64_t offset, std::span<const std::byte> source) {
  if (!has_room()) {
    wants_room_ = true;
    return 0;
  }
  const auto taken = source.first(std::min(source.size(), kMostQueued - queue_.bytes()));
  push({.to = offset, .source = taken});
  return taken.size();
}

void LinkSender::push(Item item) {
  if (!item.into.empty()) ++reads_pushed_;
  queue_.push(std::move(item));
}

bool LinkSender::answer(const layout::LinkMessage& message) {
  if (messages_.size() >= kMostMessages) return false;
  say(message);
  return true;
}

void LinkSender::clear() {
  queue_.clear();
  messages_.clear();
}

LinkSender::Flush LinkSender::begin_flush() {
  const Flush flush{++flush_number_, reads_pushed_};
  flushes_.push_back({queue_.pushed(), flush.number});
  return flush;
}

bool LinkSender::on_flushed(std::uint64_t number) {
  if (number > sent_flush_) return false;
  flushed_ = std::max(flushed_, number);
  return true;
}

bool LinkSender::on_sent() {
  --in_flight_;
  ++completed_;
  if (sent_flushes_.empty() || completed_ < sent_flushes_.front().posted) return false;
  completed_flush_ = sent_flushes_.front().number;
  sent_flushes_.pop_front();
  return true;
}

bool LinkSender::send(Endpoint& endpoint, const std::optional<RemotePlace>& peer) {
  while (in_flight_ < Endpoint::kMostInFlight && send_next(endpoint, peer)) {
  }
  return !dead_;
}

/// Returns whether there may be more to send.
bool LinkSender::send_next(Endpoint& endpoint, const std::optional<RemotePlace>& peer) {
  if (!messages_.empty()) {
    if (!posted(endpoint.send(messages_.front()))) return false;
    take_message();
    return true;
  }
  if (!peer) return false;
  if (!flushes_.empty() && sent_ >= flushes_.front().pushed) {
    say(message_of(LinkKind::flush, 0, flushes_.front().number));
    flushes_.pop_front();
    return true;
  }
  const Item* item = queue_.next(in_flight_);
  return item != nullptr && send_item(endpoint, *item, *peer);
}

bool LinkSender::send_item(Endpoint& endpoint, const Item& item, const RemotePlace& segment) {
  if (defines_slot(endpoint, item)) return true;
  const auto* region = static_cast<const RemotePlace*>(item.keep.get());
  const RemotePlace& base = region != nullptr ? *region : segment;
  const bool is_sent = item.into.empty() ? write_item(endpoint, item, segment, base)
                                         : posted(endpoint.read(item.into, {base.key, base.address + item.to}));
  if (is_sent) take_item();
  return is_sent;
}

/// Writes an item. Its word travels with the bytes if possible, else after them in a message.
bool LinkSender::write_item(Endpoint& endpoint, const Item& item, const RemotePlace& segment, const RemotePlace& base) {
  const bool is_region = item.keep != nullptr;
  std::optional<std::uint64_t> data;
  if (item.word && !is_region && endpoint.carries_words()) data = slots_.data_of(*item.word);
  if (data || !item.source.empty()) {
    const RemotePlace to = item.source.empty() ? segment : RemotePlace{base.key, base.address + item.to};
    if (!posted(endpoint.write(item.source, to, data))) return false;
    ++posted_;
  }
  if (item.word && is_region) {
    say(message_of(LinkKind::region_word, 0, item.word->at, item.word->value, base.key));
  } else if (item.word && !data) {
    const auto bell = static_cast<std::uint32_t>(bell_number(item.word->bell));
    say(message_of(LinkKind::word, bell, item.word->at, item.word->value));
  }
  return true;
}

/// Announces the slot of a word before the word is first sent. False if the peer knows it, or the word uses a message.
bool LinkSender::defines_slot(const Endpoint& endpoint, const Item& item) {
  if (!item.word || item.keep != nullptr || !endpoint.carries_words()) return false;
  const auto message = slots_.define(*item.word);
  if (message) say(*message);
  return message.has_value();
}

bool LinkSender::posted(Endpoint::Posted result) {
  if (result == Endpoint::Posted::yes) ++in_flight_;
  if (result == Endpoint::Posted::dead) dead_ = true;
  return result == Endpoint::Posted::yes;
}

void LinkSender::take_message() {
  ++posted_;
  const layout::LinkMessage& message = messages_.front();
  if (message.kind == static_cast<std::uint32_t>(LinkKind::flush)) {
    sent_flush_ = message.a;
    sent_flushes_.push_back({message.a, posted_});
  }
  messages_.pop_front();
}

void LinkSender::take_item() {
  sent_ = queue_.take().pushed;
  if (!wants_room_ || !has_room()) return;
  wants_room_ = false;
  bells_.notify(Bell::space);
}

}  // namespace wherry::fabric::ofi
