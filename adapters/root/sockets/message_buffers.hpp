// SPDX-License-Identifier: Apache-2.0
// Memory for large messages that are received, used again: fresh memory of that size costs a page fault for every 4
// KiB, which takes longer than to fill it.
#pragma once

#include <TMessage.h>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "message_slots.hpp"

namespace wherry::root {

/// A message in such memory, to give it back when it is deleted. Not for compressed ones, which are theirs to free.
class ReceivedMessage final : public TMessage {
 public:
  /// Takes the buffer over.
  ReceivedMessage(char* buffer, Int_t bytes) : TMessage(buffer, bytes, kFALSE), fReceived(buffer) {}
  ~ReceivedMessage() override;

 private:
  char* fReceived;
};

/// A message where its sender wrote it, in a slot that is free when it is deleted.
class MessageInSlot final : public TMessage {
 public:
  MessageInSlot(std::shared_ptr<OwnMessageSlots> slots, UInt_t slot, std::span<std::byte> content)
      : TMessage(content.data(), static_cast<Int_t>(content.size()), kFALSE), fSlots(std::move(slots)), fSlot(slot) {}
  ~MessageInSlot() override { fSlots->free(fSlot); }

 private:
  std::shared_ptr<OwnMessageSlots> fSlots;
  UInt_t fSlot;
};

/// Returns a buffer for a ReceivedMessage, or null if there is no memory. From any thread.
char* take_message_buffer(std::size_t bytes);
void give_back_message_buffer(char* buffer);

/// From how many bytes on it is worth it.
inline constexpr std::size_t kLargeMessage = std::size_t{64} << 10;

}  // namespace wherry::root
