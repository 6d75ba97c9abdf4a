// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "fabric/ofi/link.hpp"
#include "fabric/ofi/link_message.hpp"

namespace wherry::fabric::ofi {
namespace {

using layout::LinkKind;

/// For the peer's fabric to answer a question.
constexpr std::chrono::seconds kAnswerTimeout{10};

}  // namespace

std::size_t Link::put(std::uint64_t offset, std::span<const std::byte> source) {
  const std::lock_guard lock(mutex_);
  if (is_gone()) return 0;
  if (!room()) {
    wants_room_ = true;
    return 0;
  }
  const auto taken = source.first(std::min(source.size(), kMostQueued - queue_.bytes()));
  return accept_item({.to = offset, .source = taken}) ? taken.size() : 0;
}

bool Link::push(Item item) {
  const std::lock_guard lock(mutex_);
  return accept_item(std::move(item));
}

bool Link::has_room() {
  const std::lock_guard lock(mutex_);
  return room();
}

bool Link::accept_item(Item item) {
  if (is_gone()) return false;
  if (!item.into.empty()) ++reads_pushed_;
  queue_.push(std::move(item));
  send_what_waits();
  return true;
}

Result Link::flush(const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  const std::uint64_t number = ++flush_number_;
  const std::uint64_t reads = reads_pushed_;
  if (!is_gone()) {
    flushes_.push_back({queue_.pushed(), number});
    send_what_waits();
  }
  const auto over = [&] { return is_gone() || (flushed_ >= number && reads_done_ >= reads); };
  if (!deadline) {
    changed_.wait(lock, over);
  } else if (!changed_.wait_until(lock, *deadline, over)) {
    return Result::failure(ETIMEDOUT);
  }
  return flushed_ >= number && reads_done_ >= reads ? Result::moved(0) : Result::failure(ECONNRESET);
}

void Link::send_what_waits() {
  if (endpoint_ == nullptr || !connected_ || ends_at_) return;
  while (in_flight_ < Endpoint::kMostInFlight && send_next()) {
  }
}

/// Returns whether there may be more to send.
bool Link::send_next() {
  if (!controls_.empty()) {
    if (!posted(endpoint_->send(controls_.front()))) return false;
    controls_.pop_front();
    return true;
  }
  if (!peer_) return false;
  if (!flushes_.empty() && taken_ >= flushes_.front().pushed) {
    controls_.push_back(message_of(LinkKind::flush, 0, flushes_.front().number));
    flushes_.pop_front();
    return true;
  }
  const Item* item = queue_.next(in_flight_);
  return item != nullptr && send_item(*item);
}

bool Link::send_item(const Item& item) {
  if (defines_slot(item)) return true;
  const auto* region = static_cast<const RemotePlace*>(item.keep.get());
  const RemotePlace& base = region != nullptr ? *region : *peer_;
  const RemotePlace to{base.key, base.address + item.to};
  if (!item.into.empty()) {
    if (!posted(endpoint_->read(item.into, to))) return false;
  } else {
    std::optional<std::uint64_t> data;
    if (fits_slot(item)) {
      data = layout::slot_data(own_slots_.at({item.word->at, item.word->bell}), item.word->value);
    }
    if ((data || !item.source.empty()) &&
        !posted(endpoint_->write(item.source, item.source.empty() ? *peer_ : to, data))) {
      return false;
    }
    if (item.word && region != nullptr) {
      controls_.push_back(message_of(LinkKind::region_word, 0, item.word->at, item.word->value, region->key));
    } else if (item.word && !data) {
      const auto bell = static_cast<std::uint32_t>(bell_number(item.word->bell));
      controls_.push_back(message_of(LinkKind::word, bell, item.word->at, item.word->value));
    }
  }
  take_item();
  return true;
}

void Link::take_item() {
  taken_ = queue_.take().pushed;
  if (!wants_room_ || !room()) return;
  wants_room_ = false;
  bells_[index(Bell::space)].notify();
}

/// Whether the word can travel with a write.
bool Link::fits_slot(const Item& item) const {
  return item.word && item.keep == nullptr && endpoint_->carries_words() &&
         item.word->value <= layout::kMostSlotValue && own_slots_.contains({item.word->at, item.word->bell});
}

/// Tells the peer where a word lies before it is first sent. False: it knows, or has as many as there can be.
bool Link::defines_slot(const Item& item) {
  if (!item.word || item.keep != nullptr || !endpoint_->carries_words() || own_slots_.size() == layout::kSlots ||
      item.word->value > layout::kMostSlotValue) {
    return false;
  }
  const auto slot = static_cast<std::uint8_t>(own_slots_.size());
  if (!own_slots_.emplace(std::pair(item.word->at, item.word->bell), slot).second) return false;
  const auto bell = static_cast<std::uint64_t>(bell_number(item.word->bell));
  controls_.push_back(message_of(LinkKind::slot, slot, item.word->at, bell));
  return true;
}

bool Link::posted(Endpoint::Posted result) {
  if (result == Endpoint::Posted::yes) ++in_flight_;
  if (result == Endpoint::Posted::dead) fail_later();
  return result == Endpoint::Posted::yes;
}

std::shared_ptr<const RemotePlace> Link::reach(const memory::RemoteKey& key, std::size_t bytes, int& error) {
  std::unique_lock lock(mutex_);
  error = ENXIO;
  if (is_gone()) return nullptr;
  const std::uint32_t number = ++reach_number_;
  reaches_.emplace(number, std::nullopt);
  controls_.push_back(message_of(LinkKind::reach, number, key.place, key.kind, bytes));
  send_what_waits();
  changed_.wait_for(lock, kAnswerTimeout, [&] { return is_gone() || reaches_.at(number).has_value(); });
  const auto answer = reaches_.extract(number).mapped();
  if (answer) error = answer->error;
  return answer && error == 0 ? std::make_shared<const RemotePlace>(answer->place) : nullptr;
}

}  // namespace wherry::fabric::ofi
