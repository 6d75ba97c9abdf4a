// SPDX-License-Identifier: Apache-2.0
// Slots of words that travel with a write. 8 bits of the remote CQ data are the index of a slot: the place of the word
// and its bell, which the sender has announced before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "fabric/check.hpp"
#include "fabric/ofi/link_message.hpp"
#include "fabric/send_queue.hpp"

namespace wherry::fabric::ofi {

/// The slots that this side has announced as a sender.
class OwnSlots {
 public:
  using Word = SendQueue::Word;

  /// Assigns a slot to the word's place. The returned message announces it, and must be sent before the word. Empty if
  /// the place already has a slot, if none is free, or if the word is too large.
  std::optional<layout::LinkMessage> define(const Word& word) {
    if (slots_.size() == layout::kSlots || word.value > layout::kMostSlotValue) return {};
    const auto slot = static_cast<std::uint8_t>(slots_.size());
    if (!slots_.emplace(std::pair(word.at, word.bell), slot).second) return {};
    const auto bell = static_cast<std::uint64_t>(bell_number(word.bell));
    return message_of(layout::LinkKind::slot, slot, word.at, bell);
  }
  /// Returns the data for the write. Empty if the word has no slot or is too large.
  [[nodiscard]] std::optional<std::uint64_t> data_of(const Word& word) const {
    const auto slot = slots_.find(std::pair(word.at, word.bell));
    if (slot == slots_.end() || word.value > layout::kMostSlotValue) return {};
    return layout::slot_data(slot->second, word.value);
  }

 private:
  std::map<std::pair<std::uint64_t, std::optional<Bell>>, std::uint8_t> slots_;
};

/// The slots that the peer has announced. They are validated.
class PeerSlots {
 public:
  struct Slot {
    std::uint64_t offset = 0;  ///< of an aligned word within this side's segment
    std::optional<Bell> bell{};
  };

  /// Adds a slot. False if it is not the next one, or if its place is not a word of the segment.
  /// @param bytes  size of this side's segment
  bool add(const layout::LinkMessage& message, std::size_t bytes) {
    Slot slot{.offset = message.a};
    if (message.number != slots_.size() || message.number >= layout::kSlots || !is_word(message.a, bytes) ||
        !parse_bell(message.b, slot.bell)) {
      return false;
    }
    slots_.push_back(slot);
    return true;
  }
  /// Returns a slot; null if the peer has not announced it.
  [[nodiscard]] const Slot* find(std::uint8_t number) const {
    return number < slots_.size() ? &slots_[number] : nullptr;
  }

 private:
  std::vector<Slot> slots_;
};

}  // namespace wherry::fabric::ofi
