// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <TH1.h>
#include <TMessage.h>
#include <TROOT.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "TScif.h"
#include "TServerScif.h"

/// What TMonitor and TServerSocket return where no socket is ready.
inline TSocket* none_ready() {
  return reinterpret_cast<TSocket*>(-1);  // NOLINT(performance-no-int-to-ptr): ROOT has it so
}

/// Two ends of one connection.
class Scif : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ROOT::EnableThreadSafety();
    TH1::AddDirectory(kFALSE);
  }
  void SetUp() override {
    ASSERT_TRUE(server.IsValid());
    std::thread connecting([this] { client = std::make_unique<TScif>(server.GetUrl()); });
    accepted.reset(server.Accept());
    connecting.join();
    ASSERT_TRUE(client->IsValid());
    ASSERT_NE(accepted, nullptr);
  }

  /// Sends and receives at the same time: a message may be larger than what is between the two.
  std::unique_ptr<TMessage> pass(const TMessage& message) {
    std::thread sending([&] { sent = client->Send(message); });
    TMessage* received = nullptr;
    result = accepted->Recv(received);
    sending.join();
    return std::unique_ptr<TMessage>(received);
  }

  template <class Object>
  std::unique_ptr<Object> pass_object(const Object& object, bool evolution = false) {
    TMessage message(kMESS_OBJECT);
    message.EnableSchemaEvolution(evolution);
    message.WriteObject(&object);
    const auto received = pass(message);
    if (received == nullptr || received->What() != kMESS_OBJECT) return nullptr;
    return std::unique_ptr<Object>(static_cast<Object*>(received->ReadObject(received->GetClass())));
  }

  TServerScif server{"wherry://*:*"};
  std::unique_ptr<TScif> client;
  std::unique_ptr<TSocket> accepted;
  Int_t sent = 0;
  Int_t result = 0;
};
