// SPDX-License-Identifier: Apache-2.0
// Large messages of TScif, which are written where they are read.
#include <TMessage.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include <wherry/stream.hpp>

#include "adapters/root/layout/slots.hpp"
#include "scif_fixture.hpp"

namespace {

TEST_F(Scif, KeepsMessagesWhileOthersCome) {
  std::vector<std::unique_ptr<TMessage>> kept;
  for (int i = 0; i < 8; ++i) {
    TMessage message(kMESS_ANY);
    const std::vector<char> content(300'000, static_cast<char>('a' + i));
    message.WriteFastArray(content.data(), static_cast<Int_t>(content.size()));
    kept.push_back(pass(message));
  }
  for (int i = 0; i < 8; ++i) {
    std::vector<char> content(300'000);
    kept[static_cast<std::size_t>(i)]->ReadFastArray(content.data(), static_cast<Int_t>(content.size()));
    EXPECT_EQ(content, std::vector<char>(300'000, static_cast<char>('a' + i)));
  }
}

TEST_F(Scif, WritesLargeMessagesWhereTheyAreRead) {
  for (int i = 0; i < 40; ++i) {
    TMessage message(kMESS_ANY);
    const std::vector<char> content(2'000'000 + i, static_cast<char>(i));
    message.WriteFastArray(content.data(), static_cast<Int_t>(content.size()));
    const auto received = pass(message);
    ASSERT_NE(received, nullptr);
    EXPECT_EQ(sent, result);
    std::vector<char> read(content.size());
    received->ReadFastArray(read.data(), static_cast<Int_t>(read.size()));
    ASSERT_EQ(read, content);
  }
}

TEST_F(Scif, KeepsAMessageThatOutlivesItsSocket) {
  std::unique_ptr<TMessage> last;
  const std::vector<char> content(1'000'000, 'k');
  for (int i = 0; i < 3; ++i) {
    TMessage message(kMESS_ANY);
    message.WriteFastArray(content.data(), static_cast<Int_t>(content.size()));
    last = pass(message);
  }
  accepted->Close();
  client->Close();
  std::vector<char> read(content.size());
  last->ReadFastArray(read.data(), static_cast<Int_t>(read.size()));
  EXPECT_EQ(read, content);
}

TEST_F(Scif, DoesNotBelieveThatAMessageIsWhereNoneIs) {
  using wherry::layout::RootInSlot;
  const std::vector<std::vector<RootInSlot>> lies = {
      {{wherry::layout::kRootInSlot, 0, 1000}},        // the slot has another message
      {{wherry::layout::kRootInSlot, 2, 1000}},        // there are two
      {{wherry::layout::kRootInSlot, 1, 0x7fffffff}},  // it is not that large
      {{wherry::layout::kRootInSlot, 1, 7}},           // that is no message
  };
  for (const auto& lie : lies) {
    std::thread liar([&] {
      wherry::Stream stream = wherry::connect(server.GetUrl(), {.ring_bytes = 0, .windows = true});
      std::vector<std::byte> large(8 + 300'000);
      large[1] = std::byte{0x04};  // 0x000493e4: 300004 bytes
      large[2] = std::byte{0x93};
      large[3] = std::byte{0xe4};
      large[7] = std::byte{kMESS_ANY};
      EXPECT_TRUE(stream.send(large).ok());
      const RootInSlot good{wherry::layout::kRootInSlot, 0, 1000};
      (void)stream.send(std::as_bytes(std::span(&good, 1)));
      (void)stream.send(std::as_bytes(std::span(lie)));
      std::byte nothing{};
      EXPECT_FALSE(stream.receive(std::span(&nothing, 1)).ok());  // until the other side is gone
    });
    const std::unique_ptr<TSocket> socket(server.Accept());
    TMessage* first = nullptr;
    TMessage* second = nullptr;
    TMessage* third = nullptr;
    EXPECT_GT(socket->Recv(first), 0);
    EXPECT_GT(socket->Recv(second), 0);
    EXPECT_EQ(socket->Recv(third), -1);
    EXPECT_FALSE(socket->IsValid());
    liar.join();
    delete first;
    delete second;
  }
}

}  // namespace
