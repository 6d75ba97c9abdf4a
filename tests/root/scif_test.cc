// SPDX-License-Identifier: Apache-2.0
// TScif and TServerScif, used as programs use TSocket and TServerSocket.
#include <Bytes.h>
#include <TH1D.h>
#include <TMessage.h>
#include <TMonitor.h>
#include <TObjString.h>
#include <TROOT.h>
#include <TRef.h>
#include <TTree.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <wherry/stream.hpp>

#include "base/scoped_environment.hpp"
#include "scif_fixture.hpp"

namespace {

TH1D histogram(int bins) {
  TH1D filled("h", "title", bins, 0, bins);
  for (int i = 0; i < bins; ++i) filled.SetBinContent(i + 1, i * 0.5);
  return filled;
}

void expect_same(const TH1D& one, const TH1D& other) {
  ASSERT_EQ(one.GetNbinsX(), other.GetNbinsX());
  for (int i = 0; i <= one.GetNbinsX(); ++i) ASSERT_EQ(one.GetBinContent(i), other.GetBinContent(i));
}

TEST_F(Scif, PassesHistogramsOfAllSizes) {
  for (const int bins : {1, 1000, 100'000, 1'000'000}) {
    const TH1D before = histogram(bins);
    const auto after = pass_object(before);
    ASSERT_NE(after, nullptr);
    expect_same(before, *after);
    EXPECT_EQ(sent, result);
    EXPECT_GT(sent, 8 * bins);
  }
}

TEST_F(Scif, PassesATree) {
  TTree tree("t", "t");
  tree.SetDirectory(nullptr);
  double x = 0;
  tree.Branch("x", &x);
  for (int i = 0; i < 100'000; ++i) {
    x = i * 0.25;
    tree.Fill();
  }
  const auto after = pass_object(tree);
  ASSERT_NE(after, nullptr);
  double y = -1;
  after->SetBranchAddress("x", &y);
  ASSERT_EQ(after->GetEntries(), 100'000);
  for (int i = 0; i < 100'000; ++i) {
    after->GetEntry(i);
    ASSERT_EQ(y, i * 0.25);
  }
}

TEST_F(Scif, SendsStreamerInfosOnce) {
  const TH1D before = histogram(10);
  std::array<UInt_t, 3> bytes{};
  for (UInt_t& count : bytes) {
    expect_same(before, *pass_object(before, true));
    count = client->GetBytesSent();
  }
  EXPECT_GT(bytes[0], 2 * (bytes[1] - bytes[0]));
  EXPECT_EQ(bytes[2] - bytes[1], bytes[1] - bytes[0]);
}

/// What ROOT makes of process ids that it has already (both ends in one process) is a matter of luck: it looks at them
/// after it has deleted them. So it does not receive them here.
TEST(ScifAlone, SendsProcessIdsOnce) {
  wherry::Listener listener = wherry::listen("wherry://*:*", {.ring_bytes = 0, .windows = true});
  std::vector<UInt_t> kinds;
  std::thread receiving([&] {
    wherry::Stream stream = listener.accept();
    std::array<UInt_t, 2> head{};
    while (stream.receive_all(std::as_writable_bytes(std::span(head))).ok()) {
      kinds.push_back(net2host(head[1]));
      std::vector<std::byte> rest(net2host(head[0]) - sizeof head[1]);
      EXPECT_TRUE(stream.receive_all(rest).ok());
    }
  });
  TScif socket(listener.local().to_string().c_str());
  TObjString referred("referred to");
  const TRef reference(&referred);
  for (int i = 0; i < 2; ++i) {
    TMessage message(kMESS_OBJECT);
    message.WriteObject(&reference);
    EXPECT_GT(socket.Send(message), 0);
  }
  socket.Close();
  receiving.join();
  EXPECT_EQ(kinds, (std::vector<UInt_t>{kMESS_PROCESSID, kMESS_OBJECT, kMESS_OBJECT}));
}

TEST_F(Scif, CompressesWhereItIsAskedTo) {
  const TH1D before = histogram(100'000);
  client->SetCompressionSettings(101);
  expect_same(before, *pass_object(before));
  EXPECT_LT(client->GetBytesSent(), 400'000U);
}

TEST_F(Scif, WaitsForAcknowledgements) {
  TMessage message(kMESS_ANY | kMESS_ACK);
  message.WriteInt(7);
  const auto received = pass(message);
  ASSERT_NE(received, nullptr);
  EXPECT_EQ(received->What(), static_cast<UInt_t>(kMESS_ANY));
  EXPECT_EQ(sent, result);
  EXPECT_EQ(client->GetBytesRecv(), 2U);
}

TEST_F(Scif, SpeaksTheStockHandshake) {
  EXPECT_EQ(accepted->Send(3, 0), 8);
  EXPECT_EQ(accepted->Send(1, 1), 8);
  Int_t value = -1;
  Int_t kind = -1;
  EXPECT_EQ(client->Recv(value, kind), 8);
  EXPECT_EQ(value, 3);
  EXPECT_EQ(kind, 0);
  EXPECT_EQ(client->Recv(value, kind), 8);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(client->Send("Finished"), static_cast<Int_t>(std::strlen("Finished")) + 1);
  std::array<char, 64> text{};
  EXPECT_GT(accepted->Recv(text.data(), text.size()), 0);
  EXPECT_STREQ(text.data(), "Finished");
}

TEST_F(Scif, MovesRawBytes) {
  EXPECT_EQ(client->SendRaw("0123456789", 10), 10);
  std::array<char, 10> bytes{};
  EXPECT_EQ(accepted->RecvRaw(bytes.data(), 4, kPeek), 4);
  EXPECT_EQ(std::string(bytes.data(), 4), "0123");
  EXPECT_EQ(accepted->RecvRaw(bytes.data(), 4), 4);
  EXPECT_EQ(std::string(bytes.data(), 4), "0123");
  EXPECT_EQ(accepted->RecvRaw(bytes.data(), 10, kDontBlock), 6);
  EXPECT_EQ(std::string(bytes.data(), 6), "456789");
  EXPECT_EQ(accepted->RecvRaw(bytes.data(), 1, kOob), -3);
}

TEST_F(Scif, ReturnsWhatTSocketReturns) {
  TMessage* message = nullptr;
  accepted->SetOption(kNoBlock, 1);
  EXPECT_EQ(accepted->Recv(message), -4);
  EXPECT_EQ(accepted->Select(TSocket::kRead, 1), 0);
  EXPECT_EQ(accepted->Select(TSocket::kWrite, 1), 1);
  EXPECT_GT(client->Send("x"), 0);
  EXPECT_EQ(accepted->Select(TSocket::kRead), 1);
  EXPECT_GT(accepted->Recv(message), 0);
  delete message;
  client->Close();
  EXPECT_FALSE(client->IsValid());
  EXPECT_EQ(client->GetDescriptor(), -1);
  EXPECT_EQ(client->Send("x"), -1);
  EXPECT_EQ(accepted->Recv(message), 0) << "closed";
  EXPECT_TRUE(accepted->TestBit(TSocket::kBrokenConn));
  EXPECT_FALSE(accepted->IsValid());
  EXPECT_EQ(accepted->Recv(message), -1);
}

TEST_F(Scif, DoesNotSendPartOfAMessageWithoutBlocking) {
  client->SetOption(kNoBlock, 1);
  TMessage message(kMESS_ANY);
  const std::vector<char> content(100'000, 'x');
  message.WriteFastArray(content.data(), static_cast<Int_t>(content.size()));
  int whole = 0;
  while (client->Send(message) > 0) {
    if (++whole > 8) {  // a message that is begun and finds no space blocks until it is received
      TMessage* received = nullptr;
      ASSERT_GT(accepted->Recv(received), 0);
      delete received;
      --whole;
      break;
    }
  }
  for (; whole > 0; --whole) {
    TMessage* received = nullptr;
    ASSERT_EQ(accepted->Recv(received), message.Length() - 4);
    delete received;
  }
}

TEST_F(Scif, ReportsAConnectionThatBreaksInMidMessage) {
  for (const std::string& bytes : {std::string("\0\0\0", 3), std::string("\0\0\0\x40\0\0\0\x01half", 12)}) {
    std::thread half([&] {
      wherry::Stream stream = wherry::connect(server.GetUrl());
      EXPECT_TRUE(stream.send(std::as_bytes(std::span(bytes))).ok());
    });
    const std::unique_ptr<TSocket> socket(server.Accept());
    half.join();
    TMessage* message = nullptr;
    EXPECT_EQ(socket->Recv(message), -5);
    EXPECT_EQ(message, nullptr);
    EXPECT_FALSE(socket->IsValid());
  }
}

TEST_F(Scif, DoesNotBelieveALengthThatCannotBe) {
  for (const std::string& bytes :
       {std::string("\xff\xff\xff\xfe\0\0\0\x01", 8), std::string("\0\0\0\x02\0\0\0\x01", 8)}) {
    std::thread liar([&] {
      wherry::Stream stream = wherry::connect(server.GetUrl());
      EXPECT_TRUE(stream.send(std::as_bytes(std::span(bytes))).ok());
    });
    const std::unique_ptr<TSocket> socket(server.Accept());
    liar.join();
    TMessage* message = nullptr;
    EXPECT_EQ(socket->Recv(message), -1);
    EXPECT_FALSE(socket->IsValid());
  }
}

/// As the merge servers of ROOT's tutorials have it.
TEST_F(Scif, ServesTheStockLoopOfTMonitor) {
  constexpr int kClients = 5;
  constexpr int kMessages = 40;
  std::vector<std::thread> clients;
  for (int number = 0; number < kClients; ++number) {
    clients.emplace_back([&, number] {
      TScif socket(server.GetUrl());
      for (int i = 0; i < kMessages; ++i) {
        TMessage message(kMESS_OBJECT);
        TH1D content("h", "h", 10, 0, 10);
        content.SetBinContent(1, number);
        content.SetBinContent(2, i);
        message.WriteObject(&content);
        EXPECT_GT(socket.Send(message), 0);
      }
      EXPECT_GT(socket.Send("Finished"), 0);
      Int_t value = 0;
      Int_t kind = 0;
      EXPECT_GT(socket.Recv(value, kind), 0);  // the order of closing is not the question here
    });
  }
  TMonitor monitor;
  monitor.Add(&server);
  std::array<int, kClients> next{};
  for (int finished = 0; finished < kClients;) {
    TSocket* const ready = monitor.Select();
    ASSERT_NE(ready, nullptr);
    if (ready->IsA() == TServerSocket::Class()) {
      TSocket* const fresh = static_cast<TServerSocket*>(ready)->Accept();
      ASSERT_NE(fresh, nullptr);
      monitor.Add(fresh);
      continue;
    }
    TMessage* message = nullptr;
    ASSERT_GT(ready->Recv(message), 0);
    if (message->What() == kMESS_STRING) {
      EXPECT_GT(ready->Send(0, 0), 0);
      monitor.Remove(ready);
      delete ready;
      ++finished;
    } else {
      const std::unique_ptr<TH1D> content(static_cast<TH1D*>(message->ReadObject(message->GetClass())));
      const auto number = static_cast<std::size_t>(content->GetBinContent(1));
      EXPECT_EQ(content->GetBinContent(2), next.at(number)++);
    }
    delete message;
  }
  for (std::thread& thread : clients) thread.join();
  for (const int count : next) EXPECT_EQ(count, kMessages);
  // Nothing waits any more: a descriptor that says so for ever would make the loop spin, or block in Recv.
  EXPECT_EQ(monitor.Select(10), none_ready());
}

TEST_F(Scif, SaysNothingToAMonitorOnceAllIsReceived) {
  TMonitor monitor;
  monitor.Add(accepted.get());
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 3; ++i) EXPECT_GT(client->Send(i, 1), 0);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(monitor.Select(), accepted.get());
      Int_t value = -1;
      Int_t kind = -1;
      EXPECT_GT(accepted->Recv(value, kind), 0);
      EXPECT_EQ(value, i);
    }
    EXPECT_EQ(monitor.Select(10), none_ready());
  }
}

/// Two messages in a row: the bell of the first is silenced while the second is on its way, or has come and rings.
TEST_F(Scif, SaysNothingToAMonitorOfABellThatRingsLate) {
  constexpr int kRounds = 5000;
  std::atomic<int> sending{0};
  std::atomic<int> finished{0};
  std::thread sender([&] {
    for (int round = 1; round <= kRounds; ++round) {
      while (sending.load() < round) std::this_thread::yield();
      EXPECT_GT(client->Send(0, 1), 0);
      EXPECT_GT(client->Send(1, 1), 0);
      finished = round;
    }
  });
  pollfd polled{accepted->GetDescriptor(), POLLIN, 0};
  int late = 0;
  for (int round = 1; round <= kRounds; ++round) {
    sending = round;
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(::poll(&polled, 1, -1), 1);
      Int_t value = -1;
      Int_t kind = -1;
      EXPECT_GT(accepted->Recv(value, kind), 0);
      EXPECT_EQ(value, i);
    }
    while (finished.load() < round) std::this_thread::yield();
    late += ::poll(&polled, 1, 0);
  }
  sender.join();
  EXPECT_EQ(late, 0);
}

TEST(ServerScif, SaysWhatDoesNotWork) {
  TServerScif server(0);
  ASSERT_TRUE(server.IsValid());
  EXPECT_GT(server.GetLocalPort(), 0);
  EXPECT_FALSE(TServerScif(server.GetLocalPort()).IsValid()) << "the port is taken";
  server.SetOption(kNoBlock, 1);
  EXPECT_EQ(server.Accept(), none_ready());
  EXPECT_EQ(server.Select(TSocket::kRead, 1), 0);
  const Int_t port = server.GetLocalPort();
  server.Close();
  EXPECT_FALSE(server.IsValid());
  EXPECT_EQ(server.Accept(), nullptr);
  const wherry::ScopedEnvironment at_once("WHERRY_CONNECT_TIMEOUT", "0");
  EXPECT_FALSE(TScif(0, port).IsValid()) << "nobody listens";
}

}  // namespace
