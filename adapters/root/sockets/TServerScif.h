// SPDX-License-Identifier: Apache-2.0
#ifndef WHERRY_TServerScif
#define WHERRY_TServerScif

// A TServerSocket whose Accept() returns TScif sockets: see TScif.h.
//
// It has no ClassDef on purpose: programs recognize the server's socket by IsA() == TServerSocket::Class().

#include <memory>

#include <TServerSocket.h>

class TServerScif : public TServerSocket {
 public:
  /// Listens on a port of this process's node; 0 chooses a free port. IsValid() tells whether that succeeded.
  /// `reuse` and `backlog` have no effect.
  /// @param window  bytes of the ring that accepted sockets receive into; -1: as configured (WHERRY_RING)
  explicit TServerScif(Int_t port, Bool_t reuse = kFALSE, Int_t backlog = kDefaultBacklog, Int_t window = -1);
  /// Listens on wherry://NODE:PORT; either part may be *.
  explicit TServerScif(const char* url, Bool_t reuse = kFALSE, Int_t backlog = kDefaultBacklog, Int_t window = -1);
  ~TServerScif() override;

  /// Returns a new TScif, which the caller owns; null after an error. With kNoBlock: -1 if no connector waits.
  TSocket* Accept(UChar_t option = 0) override;
  void Close(Option_t* option = "") override;
  Int_t GetDescriptor() const override;
  TInetAddress GetLocalInetAddress() override { return {}; }
  Int_t GetLocalPort() override;
  Bool_t IsValid() const override;
  Int_t GetOption(ESockOptions option, Int_t& value) override;
  Int_t SetOption(ESockOptions option, Int_t value) override;
  /// Waits for a connector, up to `timeout` milliseconds; -1: without limit.
  Int_t Select(Int_t interest = kRead, Long_t timeout = -1) override;

 private:
  class Impl;
  void Listen(const char* url, Int_t window);

  std::unique_ptr<Impl> fImpl;  //!
};

#endif
