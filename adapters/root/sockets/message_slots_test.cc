// SPDX-License-Identifier: Apache-2.0
#include "message_slots.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "adapters/root/handover/fixture_test.hpp"
#include "arch/pause.hpp"

namespace wherry::root {
namespace {

constexpr std::size_t kBytes = 2'000'000;

/// Two ends of one connection, the sender's and the receiver's.
class Slots : public testing::Test {
 protected:
  Slots() {
    const StreamOptions options{.ring_bytes = 4096, .windows = true};
    Listener listener = listen("wherry://*:*", options);
    std::thread connecting([&] { sender = connect(listener.local().to_string(), options); });
    receiver = listener.accept();
    connecting.join();
  }

  /// Shows a page that says this of the slots.
  void show(std::uint64_t slot_bytes, std::size_t memory) {
    const auto add = [&](std::size_t bytes, std::uint64_t offset) {
      shown.push_back(std::make_unique<Memory>(bytes));
      receiver.windows().add(shown.back()->bytes(), Access::read_write, offset);
      return shown.back()->bytes().data();
    };
    add(memory, 0);
    reinterpret_cast<layout::RootSlotsPage*>(add(layout::kRootSlotsPage, layout::kRootSlotsPageOffset))->slot_bytes =
        slot_bytes;
  }

  Stream sender;
  Stream receiver;
  std::vector<std::byte> message = std::vector<std::byte>(kBytes);
  PeersMessageSlots peers;
  std::vector<std::unique_ptr<Memory>> shown;
};

TEST_F(Slots, CarryAMessageToWhereItIsRead) {
  OwnMessageSlots own(receiver.windows(), kBytes);
  for (std::uint64_t file = 0; file < 10; ++file) {
    write_file(message, file);
    const auto in_slot = peers.write(sender.windows(), message);
    ASSERT_TRUE(in_slot);
    EXPECT_EQ(in_slot->mark, layout::kRootInSlot);
    ASSERT_TRUE(sender.send(std::as_bytes(std::span(&*in_slot, 1))).ok());
    layout::RootInSlot heard{};
    ASSERT_TRUE(receiver.receive_all(std::as_writable_bytes(std::span(&heard, 1))).ok());
    const auto content = own.take(heard.slot, heard.bytes);
    ASSERT_EQ(content.size(), kBytes);
    EXPECT_TRUE(is_file(content, file));
    own.free(heard.slot);
  }
}

TEST_F(Slots, AreTwoUntilOneIsFree) {
  OwnMessageSlots own(receiver.windows(), kBytes);
  const auto first = peers.write(sender.windows(), message);
  const auto second = peers.write(sender.windows(), message);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->slot, second->slot);
  EXPECT_FALSE(peers.write(sender.windows(), message));
  ASSERT_FALSE(own.take(second->slot, second->bytes).empty());
  own.free(second->slot);
  const auto third = peers.write(sender.windows(), message);
  ASSERT_TRUE(third);
  EXPECT_EQ(third->slot, second->slot);
}

TEST_F(Slots, AreAwaitedWhileTheReceiverHasNotTakenOne) {
  OwnMessageSlots own(receiver.windows(), kBytes);
  EXPECT_FALSE(peers.await(kBytes)) << "there are none yet";
  ASSERT_FALSE(peers.write(sender.windows(), std::vector<std::byte>(2 * kBytes)));
  EXPECT_FALSE(peers.await(2 * kBytes)) << "larger than any";
  constexpr int kMessages = 1000;
  std::thread receiving([&] {
    for (int i = 0; i < kMessages; ++i) {
      layout::RootInSlot heard{};
      ASSERT_TRUE(receiver.receive_all(std::as_writable_bytes(std::span(&heard, 1))).ok());
      ASSERT_FALSE(own.take(heard.slot, heard.bytes).empty());
      own.free(heard.slot);
    }
  });
  int in_vain = 0;
  for (int i = 0; i < kMessages; ++i) {
    auto in_slot = peers.write(sender.windows(), std::span(message).first(kLeastInSlot));
    while (!in_slot) {
      in_vain += peers.await(kLeastInSlot) ? 0 : 1;
      in_slot = peers.write(sender.windows(), std::span(message).first(kLeastInSlot));
    }
    ASSERT_TRUE(sender.send(std::as_bytes(std::span(&*in_slot, 1))).ok());
  }
  receiving.join();
  EXPECT_LT(in_vain, 100) << "half a second each: a receiver may have no processor for as long, but seldom";
}

TEST_F(Slots, AreNotAwaitedWhereTheReceiversProgramKeepsThem) {
  OwnMessageSlots own(receiver.windows(), kBytes);
  for (std::uint32_t slot = 0; slot < 2; ++slot) {
    ASSERT_TRUE(peers.write(sender.windows(), message));
    ASSERT_FALSE(own.take(slot, kBytes).empty());
  }
  const MappedWindow page = sender.windows().map(layout::kRootSlotsPageOffset, layout::kRootSlotsPage);
  auto& awaited = reinterpret_cast<layout::RootSlotsPage*>(page.bytes().data())->awaited;
  std::atomic<bool> over{false};
  std::thread freeing([&] {
    while (!over && awaited == 0) arch::pause();
    if (!over) own.free(0);  // the waiting sender is woken, and the test sees it
  });
  EXPECT_FALSE(peers.await(kBytes));
  over = true;
  freeing.join();
}

TEST_F(Slots, AreAwaitedInVainNotForEver) {
  OwnMessageSlots own(receiver.windows(), kBytes);
  ASSERT_TRUE(peers.write(sender.windows(), message) && peers.write(sender.windows(), message));
  EXPECT_FALSE(peers.await(kBytes));
}

TEST_F(Slots, TakeWhatIsLargeEnoughAndFits) {
  OwnMessageSlots own(receiver.windows(), kBytes);
  EXPECT_FALSE(peers.write(sender.windows(), std::span(message).first(kLeastInSlot - 1)));
  EXPECT_FALSE(peers.write(sender.windows(), std::vector<std::byte>(2 * kBytes)));
  EXPECT_FALSE(peers.write(sender.windows(), std::vector<std::byte>(kMostInSlot + 1)));
  EXPECT_TRUE(peers.write(sender.windows(), std::span(message).first(kLeastInSlot)));
}

TEST_F(Slots, GrowWithTheMessages) {
  MessageSlotGenerations own;
  const auto small = std::span(message).first(kLeastInSlot);
  own.offer(receiver.windows(), small.size());
  const auto first = peers.write(sender.windows(), small);
  ASSERT_TRUE(first);
  EXPECT_FALSE(peers.write(sender.windows(), message));
  own.offer(receiver.windows(), message.size());
  const auto second = peers.write(sender.windows(), message);
  ASSERT_TRUE(second);
  EXPECT_GE(second->slot, layout::kRootSlots);
  EXPECT_EQ(own.take(first->slot, first->bytes).content.size(), small.size()) << "it was sent before";
  const auto taken = own.take(second->slot, second->bytes);
  EXPECT_EQ(taken.content.size(), message.size());
  EXPECT_TRUE(own.take(first->slot, first->bytes).content.empty()) << "nobody uses those any more";
  EXPECT_TRUE(own.take(2 * second->slot, 100).content.empty()) << "there are none";
  taken.slots->free(taken.slot);
  own.offer(receiver.windows(), small.size());
  EXPECT_TRUE(peers.write(sender.windows(), small));
}

TEST_F(Slots, OfMessagesThatGrowAreLimited) {
  MessageSlotGenerations own;
  for (std::size_t bytes = kLeastInSlot; bytes < kMostInSlot; bytes += bytes / 50) own.offer(receiver.windows(), bytes);
  own.offer(receiver.windows(), kMostInSlot);
  bool found = false;
  for (std::uint32_t i = 0; i < layout::kRootSlotsGenerations && !found; ++i) {
    found = peers.write(sender.windows(), std::vector<std::byte>(kMostInSlot)).has_value();
  }
  EXPECT_TRUE(found);
}

TEST_F(Slots, AreNotThereBeforeTheReceiverMakesThem) {
  EXPECT_FALSE(peers.write(sender.windows(), message));
  OwnMessageSlots own(receiver.windows(), kBytes);
  EXPECT_TRUE(peers.write(sender.windows(), message));
}

TEST_F(Slots, AreNotBelievedToHoldWhatTheyCannot) {
  OwnMessageSlots own(receiver.windows(), kBytes);
  EXPECT_TRUE(own.take(2, 100).empty());
  EXPECT_TRUE(own.take(0xffff'ffff, 100).empty());
  EXPECT_TRUE(own.take(0, 0xffff'ffff).empty());
  EXPECT_FALSE(own.take(1, 100).empty());
  EXPECT_TRUE(own.take(1, 100).empty()) << "a message of the program's lies there";
}

TEST_F(Slots, OfASizeThatCannotBeAreNotUsed) {
  show(1, 64 * kMiB);
  EXPECT_FALSE(peers.write(sender.windows(), message));
}

TEST_F(Slots, LargerThanAnyAreNotUsed) {
  show(kMostInSlot + 4096, 64 * kMiB);
  EXPECT_FALSE(peers.write(sender.windows(), message));
}

TEST_F(Slots, LargerThanTheirWindowAreNotUsed) {
  show(4 * kMiB, kMiB);
  EXPECT_FALSE(peers.write(sender.windows(), message));
}

TEST_F(Slots, StayReadableWhenTheirSenderIsGone) {
  OwnMessageSlots own(receiver.windows(), kBytes);
  write_file(message, 3);
  const auto in_slot = peers.write(sender.windows(), message);
  ASSERT_TRUE(in_slot);
  peers = {};
  sender.close();
  receiver.close();
  EXPECT_TRUE(is_file(own.take(in_slot->slot, in_slot->bytes), 3));
  own.free(in_slot->slot);
}

}  // namespace
}  // namespace wherry::root
