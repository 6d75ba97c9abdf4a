// SPDX-License-Identifier: Apache-2.0
// Words that travel with a write: 8 bits of remote CQ data name the place of the word and its bell, which the sender
// has told before.
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

/// Those of the sender.
class OwnSlots {
 public:
  using Word = SendQueue::Word;

  /// Gives the word's place a slot. The message tells the peer, and is sent before the word. Empty: it has one already,
  /// or there is none for it.
  std::optional<layout::LinkMessage> define(const Word& word) {
    if (slots_.size() == layout::kSlots || word.value > layout::kMostSlotValue) return {};
    const auto slot = static_cast<std::uint8_t>(slots_.size());
    if (!slots_.emplace(std::pair(word.at, word.bell), slot).second) return {};
    const auto bell = static_cast<std::uint64_t>(bell_number(word.bell));
    return message_of(layout::LinkKind::slot, slot, word.at, bell);
  }
  /// What the write carries. Empty: the word has no slot, or is too large.
  [[nodiscard]] std::optional<std::uint64_t> data_of(const Word& word) const {
    const auto slot = slots_.find(std::pair(word.at, word.bell));
    if (slot == slots_.end() || word.value > layout::kMostSlotValue) return {};
    return layout::slot_data(slot->second, word.value);
  }

 private:
  std::map<std::pair<std::uint64_t, std::optional<Bell>>, std::uint8_t> slots_;
};

/// Those of the peer, none of which is trusted.
class PeerSlots {
 public:
  struct Slot {
    std::uint64_t offset = 0;  ///< of an aligned word within this side's segment
    std::optional<Bell> bell{};
  };

  /// @param bytes  of this side's segment
  /// False: it is not the next slot, or no word of the segment.
  bool add(const layout::LinkMessage& message, std::size_t bytes) {
    Slot slot{.offset = message.a};
    if (message.number != slots_.size() || message.number >= layout::kSlots || !is_word(message.a, bytes) ||
        !parse_bell(message.b, slot.bell)) {
      return false;
    }
    slots_.push_back(slot);
    return true;
  }
  /// Null: the peer has told of no such slot.
  [[nodiscard]] const Slot* find(std::uint8_t number) const {
    return number < slots_.size() ? &slots_[number] : nullptr;
  }

 private:
  std::vector<Slot> slots_;
};

}  // namespace wherry::fabric::ofi
