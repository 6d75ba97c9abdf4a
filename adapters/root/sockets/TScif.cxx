// SPDX-License-Identifier: Apache-2.0
#include "TScif.h"

#include <Bytes.h>
#include <TError.h>
#include <TMessage.h>
#include <TROOT.h>
#include <TVirtualMutex.h>
#include <poll.h>
#include <sys/select.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include <wherry/error.hpp>

#include "message_buffers.hpp"
#include "scif_impl.hpp"

ClassImp(TScif);

using wherry::Result;

TScif::TScif(const char* url, Int_t window) { Connect(url, window); }

TScif::TScif(Int_t node, Int_t port, Int_t window) { Connect(TString::Format("wherry://%d:%d", node, port), window); }

TScif::TScif(std::unique_ptr<Impl> impl, const char* name) : fImpl(std::move(impl)) {
  fUrl = name;
  fService = "wherry";
  SetNameTitle(name, fService);
  R__LOCKGUARD(gROOTMutex);
  gROOT->GetListOfSockets()->Add(this);
}

void TScif::Connect(const char* url, Int_t window) {
  fUrl = url;
  fService = "wherry";
  SetNameTitle(url, fService);
  try {
    fImpl = std::make_unique<Impl>(wherry::connect(url, Impl::options(window)));
  } catch (const std::exception& error) {
    Error("TScif", "%s", error.what());
    return;
  }
  R__LOCKGUARD(gROOTMutex);
  gROOT->GetListOfSockets()->Add(this);
}

TScif::~TScif() { TScif::Close(); }

void TScif::Close(Option_t* /*option*/) {
  if (fImpl == nullptr) return;
  fImpl.reset();
  {
    R__LOCKGUARD(gROOTMutex);
    gROOT->GetListOfSockets()->Remove(this);
  }
  SafeDelete(fUUIDs);
  SafeDelete(fLastUsageMtx);
}

Bool_t TScif::IsValid() const { return fImpl != nullptr && fImpl->stream.is_open(); }

Int_t TScif::GetDescriptor() const {
  if (!IsValid()) return kInvalid;
  try {
    fImpl->polled = true;
    const Int_t descriptor = fImpl->stream.receive_descriptor();
    if (descriptor >= FD_SETSIZE) {
      Error("GetDescriptor", "ROOT's TMonitor waits for descriptors below %d, and this is %d: too many sockets",
            FD_SETSIZE, descriptor);
    }
    return descriptor;
  } catch (const std::exception& error) {
    Error("GetDescriptor", "%s", error.what());
    return kInvalid;
  }
}

Int_t TScif::GetLocalPort() { return IsValid() ? fImpl->stream.local().port.value_or(0) : -1; }

Int_t TScif::GetOption(ESockOptions option, Int_t& value) {
  if (!IsValid()) return kFailed;
  switch (option) {
    case kNoBlock:
      value = fImpl->blocking ? 0 : 1;
      return 0;
    case kSendBuffer:
      value = static_cast<Int_t>(fImpl->stream.send_capacity());
      return 0;
    case kRecvBuffer:
      value = static_cast<Int_t>(fImpl->stream.receive_capacity());
      return 0;
    default:
      value = -1;
      return kFailed;
  }
}

Int_t TScif::SetOption(ESockOptions option, Int_t value) {
  if (!IsValid()) return kFailed;
  if (option == kNoBlock) fImpl->blocking = value == 0;
  // kNoDelay and kKeepAlive have no effect: nothing is delayed, and a dead peer is always detected.
  return option == kNoBlock || option == kNoDelay || option == kKeepAlive ? 0 : kFailed;
}

Int_t TScif::Select(Int_t interest, Long_t timeout) {
  if (!IsValid()) return kFailed;
  wherry::Stream& stream = fImpl->stream;
  const wherry::Timeout wait = timeout < 0 ? wherry::Timeout{} : wherry::Timeout{std::chrono::milliseconds(timeout)};
  if (interest == (kRead | kWrite)) {
    std::array<pollfd, 2> polled{pollfd{GetDescriptor(), POLLIN, 0}, pollfd{stream.send_descriptor(), POLLIN, 0}};
    if (stream.wait_writable(1, std::chrono::nanoseconds(0)).error != ETIMEDOUT) return 1;
    const int ready = ::poll(polled.data(), polled.size(), static_cast<int>(std::clamp(timeout, -1L, long{INT_MAX})));
    return ready > 0 ? 1 : ready;
  }
  const Result result = interest == kWrite ? stream.wait_writable(1, wait) : stream.wait_readable(wait);
  return result.failed() && result.error == ETIMEDOUT ? 0 : 1;
}

/// Sends all bytes. With kNoBlock, sends all of them or none.
Int_t TScif::SendAll(const void* buffer, Int_t bytes) {
  ResetBit(kBrokenConn);
  auto left = bytes_of(buffer, bytes);
  if (!fImpl->blocking) {
    const Result result = fImpl->stream.try_send(left);
    fImpl->has_sent(result.bytes);
    if (!result.ok()) return Failed(static_cast<int>(result.status), result.error, false);
    left = left.subspan(result.bytes);
  }
  if (!left.empty()) {
    const Result result = fImpl->stream.send(left);
    fImpl->has_sent(result.bytes);
    if (!result.ok()) return Failed(static_cast<int>(result.status), result.error, false);
  }
  fBytesSent += static_cast<UInt_t>(bytes);
  fgBytesSent += static_cast<ULong64_t>(bytes);
  return bytes;
}

/// Blocks until all bytes have been received.
Int_t TScif::RecvAll(void* buffer, Int_t bytes) {
  const Result result = fImpl->stream.receive_all(bytes_of(buffer, bytes));
  fImpl->received += result.bytes;
  fBytesRecv += static_cast<UInt_t>(result.bytes);
  fgBytesRecv += result.bytes;
  if (result.ok()) return bytes;
  // An end of the stream within the requested bytes is an error.
  if (result.ended() && result.bytes != 0) return Failed(static_cast<int>(wherry::Status::failed), ECONNRESET, true);
  return Failed(static_cast<int>(result.status), result.error, true);
}

Int_t TScif::SendRaw(const void* buffer, Int_t bytes, ESendRecvOptions option) {
  TSystem::ResetErrno();
  if (!IsValid() || bytes < 0) return kFailed;
  if (option == kOob) return kNoOutOfBand;
  if (bytes == 0) return 0;
  Int_t sent = 0;
  if (option == kDontBlock) {
    ResetBit(kBrokenConn);
    const Result result = fImpl->stream.try_send(bytes_of(buffer, bytes));
    fImpl->has_sent(result.bytes);
    if (!result.ok()) return Failed(static_cast<int>(result.status), result.error, false);
    sent = static_cast<Int_t>(result.bytes);
    fBytesSent += static_cast<UInt_t>(sent);
    fgBytesSent += static_cast<ULong64_t>(sent);
  } else {
    sent = SendAll(buffer, bytes);
  }
  if (sent > 0) Touch();
  return sent;
}

Int_t TScif::RecvRaw(void* buffer, Int_t bytes, ESendRecvOptions option) {
  TSystem::ResetErrno();
  if (!IsValid() || bytes < 0) return kFailed;
  if (option == kOob) return kNoOutOfBand;
  if (bytes == 0) return 0;
  ResetBit(kBrokenConn);
  wherry::Stream& stream = fImpl->stream;
  const Result there = fImpl->blocking ? stream.wait_readable() : stream.wait_readable(std::chrono::nanoseconds(0));
  if (there.failed() && there.error == ETIMEDOUT) return kWouldBlock;
  if (!there.ok()) return Failed(static_cast<int>(there.status), there.error, true);
  Int_t received = 0;
  if (option == kPeek) {
    const auto shown = stream.peek(static_cast<std::size_t>(bytes));
    std::memcpy(buffer, shown.first.data(), shown.first.size());
    if (!shown.second.empty()) {
      std::memcpy(static_cast<char*>(buffer) + shown.first.size(), shown.second.data(), shown.second.size());
    }
    return static_cast<Int_t>(shown.size());
  }
  if (option == kDontBlock) {
    const Result result = stream.receive(bytes_of(buffer, bytes));
    fImpl->received += result.bytes;
    if (!result.ok()) return Failed(static_cast<int>(result.status), result.error, true);
    received = static_cast<Int_t>(result.bytes);
    fBytesRecv += static_cast<UInt_t>(received);
    fgBytesRecv += static_cast<ULong64_t>(received);
  } else {
    received = RecvAll(buffer, bytes);
  }
  LookAgain();
  if (received > 0) Touch();
  return received;
}

/// Makes the descriptor unreadable if there is nothing to receive, as TMonitor requires. peek() does that, but the peer
/// could still ring for bytes that this side has already received: await() excludes that first.
void TScif::LookAgain() {
  if (!IsValid() || !fImpl->polled) return;
  fImpl->peers_sent.await(fImpl->stream, fImpl->received);
  (void)fImpl->stream.peek(1);
}

/// Returns TSocket's value for an error. Like TSocket, closes the connection unless the call would block.
Int_t TScif::Failed(int status, int error, bool receiving) {
  if (status == static_cast<int>(wherry::Status::would_block)) return kWouldBlock;
  const bool ended = status == static_cast<int>(wherry::Status::end);
  errno = error;
  SetBit(kBrokenConn);
  fImpl->stream.close();
  SafeDelete(fUUIDs);
  SafeDelete(fLastUsageMtx);
  if (receiving && ended) return 0;
  return error == ECONNRESET || error == EPIPE ? kReset : kFailed;
}
