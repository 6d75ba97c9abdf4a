// SPDX-License-Identifier: Apache-2.0
// TScif: sends and receives messages.
#include <Bytes.h>
#include <TError.h>
#include <TMessage.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "TScif.h"
#include "message_buffers.hpp"
#include "scif_impl.hpp"

namespace {

using wherry::Result;

/// Gives access to TMessage::SetLength, which is protected.
struct SocketsMessage : TMessage {
  using TMessage::TMessage;
  static void write_length(const TMessage& message) { (message.*(&SocketsMessage::SetLength))(); }
};

/// A message that owns its memory; the base class frees it.
struct OwningMessage final : TMessage {
  OwningMessage(char* buffer, Int_t bytes) : TMessage(buffer, bytes, kTRUE) {}
};

}  // namespace

Int_t TScif::Send(const TMessage& message) {
  TSystem::ResetErrno();
  if (!IsValid()) return kFailed;
  if (message.IsReading()) {
    Error("Send", "cannot send a message used for reading");
    return kFailed;
  }
  SendStreamerInfos(message);
  SendProcessIDs(message);
  SocketsMessage::write_length(message);
  auto& compressed = const_cast<TMessage&>(message);  // as TSocket::Send does
  if (GetCompressionLevel() > 0 && message.GetCompressionLevel() == 0) compressed.SetCompressionSettings(fCompress);
  if (message.GetCompressionLevel() > 0) compressed.Compress();
  const Int_t sent = message.CompBuffer() != nullptr ? SendAll(message.CompBuffer(), message.CompLength())
                                                     : SendPlain(message.Buffer(), message.Length());
  if (sent <= 0) return sent;
  if ((message.What() & kMESS_ACK) != 0) {
    if (const Int_t answer = Acknowledged(); answer < 0) return answer;
  }
  Touch();
  return sent - static_cast<Int_t>(sizeof(UInt_t));
}

/// Sends a message that is not compressed: in a slot of the peer's if possible, else through the ring.
Int_t TScif::SendPlain(const void* buffer, Int_t bytes) {
  if (fImpl->shares() && static_cast<std::size_t>(bytes) >= wherry::root::kLeastInSlot) {
    wherry::root::PeersMessageSlots& slots = fImpl->peers_slots;
    auto in_slot = slots.write(fImpl->stream.windows(), bytes_of(buffer, bytes));
    if (!in_slot && fImpl->blocking && slots.await(static_cast<std::size_t>(bytes))) {
      in_slot = slots.write(fImpl->stream.windows(), bytes_of(buffer, bytes));
    }
    if (in_slot) {
      const bool blocking = std::exchange(fImpl->blocking, true);  // the slot is filled and cannot be undone
      const Int_t sent = SendAll(&*in_slot, sizeof *in_slot);
      fImpl->blocking = blocking;
      if (sent <= 0) return sent;
      fBytesSent += static_cast<UInt_t>(bytes - sent);
      fgBytesSent += static_cast<ULong64_t>(bytes - sent);
      return bytes;
    }
  }
  return SendAll(buffer, bytes);
}

Int_t TScif::Acknowledged() {
  std::array<char, 2> answer{};
  const Int_t received = RecvAll(answer.data(), answer.size());
  LookAgain();
  if (received <= 0) return received == kReset ? kReset : kFailed;
  if (std::strncmp(answer.data(), "ok", answer.size()) != 0) {
    Error("Send", "bad acknowledgement");
    return kFailed;
  }
  return received;
}

Int_t TScif::Recv(TMessage*& message) {
  TSystem::ResetErrno();
  message = nullptr;
  for (;;) {
    if (!IsValid()) return kFailed;
    ResetBit(kBrokenConn);
    if (!fImpl->blocking) {
      const Result there = fImpl->stream.wait_readable(std::chrono::nanoseconds(0));
      if (there.failed() && there.error == ETIMEDOUT) return kWouldBlock;
    }
    // The length, which does not include itself, and the kind of the message.
    std::array<UInt_t, 2> head{};
    Int_t received = RecvAll(head.data(), sizeof head);
    if (received <= 0) return received;
    message = head[0] == wherry::layout::kRootInSlot ? RecvFromSlot(head[1], received)
                                                     : RecvBody(net2host(head[0]), head[1], received);
    if (message == nullptr) return received;
    LookAgain();
    if (RecvStreamerInfos(message) || RecvProcessIDs(message)) continue;
    if ((message->What() & kMESS_ACK) != 0) {
      if (const Int_t answer = Acknowledge(*message); answer < 0) {
        delete message;
        message = nullptr;
        return answer;
      }
    }
    Touch();
    return received;
  }
}

/// Receives the message that the peer announced in a slot. If that fails, returns null, and sets `received` to the
/// value that Recv is to return.
TMessage* TScif::RecvFromSlot(UInt_t slot, Int_t& received) {
  UInt_t bytes = 0;
  received = RecvAll(&bytes, sizeof bytes);
  if (received <= 0) {
    if (received == 0) received = kReset;
    return nullptr;
  }
  wherry::root::MessageSlotGenerations::Taken taken;
  if (bytes >= sizeof(wherry::layout::RootInSlot)) taken = fImpl->own_slots.take(slot, bytes);
  const std::span<std::byte> content = taken.content;
  if (content.empty()) {
    Error("Recv", "the peer announced an invalid message: slot %u, %u bytes", slot, bytes);
    received = Failed(static_cast<int>(wherry::Status::failed), EPROTO, true);
    return nullptr;
  }
  const UInt_t more = bytes - static_cast<UInt_t>(sizeof(wherry::layout::RootInSlot));
  fBytesRecv += more;
  fgBytesRecv += more;
  received = static_cast<Int_t>(bytes - sizeof bytes);
  UInt_t what = 0;
  std::memcpy(&what, content.data() + sizeof bytes, sizeof what);
  if ((net2host(what) & kMESS_ZIP) == 0) return new wherry::root::MessageInSlot(taken.slots, taken.slot, content);
  // An honest peer puts no compressed message into a slot. TMessage would free the slot's memory, so it is copied.
  char* const copy = new char[content.size()];
  std::memcpy(copy, content.data(), content.size());
  taken.slots->free(taken.slot);
  return new OwningMessage(copy, static_cast<Int_t>(content.size()));
}

/// Receives the rest of a message after its head. If that fails, returns null, and sets `received` to the value that
/// Recv is to return.
TMessage* TScif::RecvBody(UInt_t bytes, UInt_t what, Int_t& received) {
  const std::size_t size = std::size_t{bytes} + sizeof bytes;
  if (bytes < sizeof what || size > INT_MAX) {
    Error("Recv", "the peer announced a message of an invalid length: %u bytes", bytes);
    received = Failed(static_cast<int>(wherry::Status::failed), EPROTO, true);
    return nullptr;
  }
  const bool compressed = (net2host(what) & kMESS_ZIP) != 0;
  const bool again = size >= wherry::root::kLargeMessage && !compressed;
  char* const buffer = again ? wherry::root::take_message_buffer(size) : new (std::nothrow) char[size];
  const auto give_back = [&] { again ? wherry::root::give_back_message_buffer(buffer) : delete[] buffer; };
  if (buffer == nullptr) {
    Error("Recv", "no memory for a message of %u bytes", bytes);
    received = Failed(static_cast<int>(wherry::Status::failed), ENOMEM, true);
    return nullptr;
  }
  const UInt_t length = host2net(bytes);
  std::memcpy(buffer, &length, sizeof length);
  std::memcpy(buffer + sizeof length, &what, sizeof what);
  const std::size_t head = sizeof length + sizeof what;
  if (size > head) {
    const Int_t rest = RecvAll(buffer + head, static_cast<Int_t>(size - head));
    if (rest <= 0) {
      give_back();
      received = rest == 0 ? kReset : rest;  // an end within a message is an error
      return nullptr;
    }
  }
  received = static_cast<Int_t>(bytes);
  if (!compressed && fImpl->shares()) fImpl->own_slots.offer(fImpl->stream.windows(), size);
  if (again) return new wherry::root::ReceivedMessage(buffer, static_cast<Int_t>(size));
  return new OwningMessage(buffer, static_cast<Int_t>(size));
}

Int_t TScif::Acknowledge(TMessage& message) {
  const Int_t sent = SendAll("ok", 2);
  if (sent >= 0) message.SetWhat(message.What() & ~kMESS_ACK);
  return sent;
}
