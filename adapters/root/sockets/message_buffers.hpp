// SPDX-License-Identifier: Apache-2.0
// Recycles the memory of large received messages. New memory of that size costs a page fault per 4 KiB, which takes
// longer than filling it.
#pragma once

#include <TMessage.h>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "message_slots.hpp"

namespace wherry::root {

/// A message in a recycled buffer, which its destructor gives back. Not for compressed messages: TMessage frees their
/// memory itself.
class ReceivedMessage final : public TMessage {
 public:
  /// Takes ownership of the buffer.
  ReceivedMessage(char* buffer, Int_t bytes) : TMessage(buffer, bytes, kFALSE), fReceived(buffer) {}
  ~ReceivedMessage() override;

 private:
  char* fReceived;
};

/// A message in a slot, where its sender wrote it. The destructor frees the slot.
class MessageInSlot final : public TMessage {
 public:
  MessageInSlot(std::shared_ptr<OwnMessageSlots> slots, UInt_t slot, std::span<std::byte> content)
      : TMessage(content.data(), static_cast<Int_t>(content.size()), kFALSE), fSlots(std::move(slots)), fSlot(slot) {}
  ~MessageInSlot() override { fSlots->free(fSlot); }

 private:
  std::shared_ptr<OwnMessageSlots> fSlots;
  UInt_t fSlot;
};

/// Returns a buffer for a ReceivedMessage, or null if there is no memory. Thread-safe.
char* take_message_buffer(std::size_t bytes);
void give_back_message_buffer(char* buffer);

/// The smallest message, in bytes, for which recycling is worth its cost.
inline constexpr std::size_t kLargeMessage = std::size_t{64} << 10;

}  // namespace wherry::root
