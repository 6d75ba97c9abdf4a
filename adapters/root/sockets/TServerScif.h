// SPDX-License-Identifier: Apache-2.0
#ifndef WHERRY_TServerScif
#define WHERRY_TServerScif

// A TServerSocket with an Accept() that returns TScifs: see TScif.h.
//
// It has no ClassDef on purpose: programs tell the server's socket from the others by IsA() == TServerSocket::Class().

#include <memory>

#include <TServerSocket.h>

class TServerScif : public TServerSocket {
 public:
  /// Listens on a port of this process's node; 0 is a free one. The other arguments are TServerSocket's; `window` is
  /// the size of the rings of what is accepted. Use IsValid() to see whether it does.
  explicit TServerScif(Int_t port, Bool_t reuse = kFALSE, Int_t backlog = kDefaultBacklog, Int_t window = -1);
  /// Listens on wherry://NODE:PORT, where both may be *.
  explicit TServerScif(const char* url, Bool_t reuse = kFALSE, Int_t backlog = kDefaultBacklog, Int_t window = -1);
  ~TServerScif() override;

  /// A TScif; null after an error, -1 with kNoBlock where no connector waits.
  TSocket* Accept(UChar_t option = 0) override;
  void Close(Option_t* option = "") override;
  Int_t GetDescriptor() const override;
  TInetAddress GetLocalInetAddress() override { return {}; }
  Int_t GetLocalPort() override;
  Bool_t IsValid() const override;
  Int_t GetOption(ESockOptions option, Int_t& value) override;
  Int_t SetOption(ESockOptions option, Int_t value) override;
  /// Waits for a connector.
  Int_t Select(Int_t interest = kRead, Long_t timeout = -1) override;

 private:
  class Impl;
  void Listen(const char* url, Int_t window);

  std::unique_ptr<Impl> fImpl;  //!
};

#endif
