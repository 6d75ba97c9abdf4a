// SPDX-License-Identifier: Apache-2.0
#ifndef WHERRY_TScif
#define WHERRY_TScif

// A TSocket over shared memory. Programs that exchange TMessages change only the line that creates the socket.
//
//   TScif socket("wherry://0:2000");        TServerScif server(2000);
//   socket.Send(message);                   TSocket* socket = server.Accept();
//
// All functions of TSocket are supported, with its return values. So are streamer infos, process ids, acknowledged
// messages (kMESS_ACK), compression, and TMonitor: GetDescriptor() is readable while there is something to receive.
//
// Differences from TSocket:
//   - Addresses are those of Wherry; there are no TInetAddresses.
//   - There is no out-of-band data (-3).
//   - With kNoBlock, a message is moved whole or not at all.
//   - Only Select() supports an interest in writing; TMonitor does not.
//
// Threads: as for TSocket. In addition, one thread may send while another receives.

#include <memory>

#include <TSocket.h>

class TScif : public TSocket {
  friend class TServerScif;

 public:
  /// Connects to wherry://NODE:PORT. IsValid() tells whether that succeeded.
  /// @param window  bytes of the ring that this socket receives into; -1: as configured (WHERRY_RING)
  explicit TScif(const char* url, Int_t window = -1);
  TScif(Int_t node, Int_t port, Int_t window = -1);
  TScif(const TScif&) = delete;
  TScif& operator=(const TScif&) = delete;
  ~TScif() override;

  void Close(Option_t* option = "") override;
  Int_t GetDescriptor() const override;
  TInetAddress GetLocalInetAddress() override { return {}; }
  Int_t GetLocalPort() override;
  Bool_t IsValid() const override;
  Int_t GetOption(ESockOptions option, Int_t& value) override;
  Int_t SetOption(ESockOptions option, Int_t value) override;
  Int_t Select(Int_t interest = kRead, Long_t timeout = -1) override;

  using TSocket::Recv;
  using TSocket::Send;
  Int_t Send(const TMessage& message) override;
  Int_t Recv(TMessage*& message) override;
  Int_t SendRaw(const void* buffer, Int_t bytes, ESendRecvOptions option = kDefault) override;
  Int_t RecvRaw(void* buffer, Int_t bytes, ESendRecvOptions option = kDefault) override;

 private:
  class Impl;
  TScif(std::unique_ptr<Impl> impl, const char* name);
  void Connect(const char* url, Int_t window);
  Int_t SendPlain(const void* buffer, Int_t bytes);
  Int_t SendAll(const void* buffer, Int_t bytes);
  Int_t RecvAll(void* buffer, Int_t bytes);
  TMessage* RecvBody(UInt_t bytes, UInt_t what, Int_t& received);
  TMessage* RecvFromSlot(UInt_t slot, Int_t& received);
  Int_t Acknowledged();
  Int_t Acknowledge(TMessage& message);
  Int_t Failed(int status, int error, bool receiving);
  void LookAgain();

  std::unique_ptr<Impl> fImpl;  //!

  ClassDefOverride(TScif, 0)  // A socket over shared memory
};

#endif
