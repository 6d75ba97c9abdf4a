// SPDX-License-Identifier: Apache-2.0
#include "TServerScif.h"

#include <TError.h>
#include <TROOT.h>
#include <TVirtualMutex.h>
#include <poll.h>

#include <algorithm>
#include <climits>
#include <memory>
#include <optional>

#include <wherry/error.hpp>

#include "scif_impl.hpp"

class TServerScif::Impl {
 public:
  Impl(const char* url, wherry::StreamOptions options) : listener(wherry::listen(url, options)) {}

  wherry::Listener listener;
  bool blocking = true;
};

// TServerSocket's constructors need a TCP port. They get a free loopback port, which Listen() closes at once.
TServerScif::TServerScif(Int_t port, Bool_t /*reuse*/, Int_t backlog, Int_t window)
    : TServerSocket(0, kFALSE, backlog, -1, ESocketBindOption::kInaddrLoopback) {
  Listen(port == 0 ? "wherry://*:*" : TString::Format("wherry://*:%d", port).Data(), window);
}

TServerScif::TServerScif(const char* url, Bool_t /*reuse*/, Int_t backlog, Int_t window)
    : TServerSocket(0, kFALSE, backlog, -1, ESocketBindOption::kInaddrLoopback) {
  Listen(url, window);
}

void TServerScif::Listen(const char* url, Int_t window) {
  if (TServerSocket::IsValid()) TServerSocket::Close();
  fService = "wherry";
  try {
    fImpl = std::make_unique<Impl>(url, TScif::Impl::options(window));
  } catch (const std::exception& error) {
    Error("TServerScif", "%s", error.what());
    return;
  }
  fUrl = fImpl->listener.local().to_string().c_str();
  SetNameTitle("ServerScif", fUrl);
  R__LOCKGUARD(gROOTMutex);
  gROOT->GetListOfSockets()->Add(this);
}

TServerScif::~TServerScif() { TServerScif::Close(); }

void TServerScif::Close(Option_t* /*option*/) {
  if (fImpl == nullptr) return;
  fImpl.reset();
  R__LOCKGUARD(gROOTMutex);
  gROOT->GetListOfSockets()->Remove(this);
}

Bool_t TServerScif::IsValid() const { return fImpl != nullptr; }
Int_t TServerScif::GetDescriptor() const { return fImpl == nullptr ? kInvalid : fImpl->listener.descriptor(); }
Int_t TServerScif::GetLocalPort() { return fImpl == nullptr ? -1 : fImpl->listener.local().port.value_or(0); }

Int_t TServerScif::GetOption(ESockOptions option, Int_t& value) {
  value = fImpl != nullptr && option == kNoBlock ? (fImpl->blocking ? 0 : 1) : -1;
  return value < 0 ? -1 : 0;
}

Int_t TServerScif::SetOption(ESockOptions option, Int_t value) {
  if (fImpl == nullptr || option != kNoBlock) return -1;
  fImpl->blocking = value == 0;
  return 0;
}

Int_t TServerScif::Select(Int_t interest, Long_t timeout) {
  if (fImpl == nullptr) return -1;
  if ((interest & kRead) == 0) return 0;
  pollfd polled{fImpl->listener.descriptor(), POLLIN, 0};
  return ::poll(&polled, 1, static_cast<int>(std::clamp(timeout, -1L, long{INT_MAX})));
}

TSocket* TServerScif::Accept(UChar_t /*option*/) {
  if (fImpl == nullptr) return nullptr;
  try {
    std::optional<wherry::Stream> stream = fImpl->listener.try_accept();
    // TServerSocket's return value for "would block".
    if (!stream && !fImpl->blocking) return reinterpret_cast<TSocket*>(-1);  // NOLINT(performance-no-int-to-ptr)
    if (!stream) stream = fImpl->listener.accept();
    const std::string name = stream->peer().address.to_string();
    return new TScif(std::make_unique<TScif::Impl>(std::move(*stream)), name.c_str());
  } catch (const std::exception& error) {
    Error("Accept", "%s", error.what());
    return nullptr;
  }
}
