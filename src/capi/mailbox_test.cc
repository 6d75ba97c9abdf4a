// SPDX-License-Identifier: Apache-2.0
// The mailboxes of wherry.h as a C program uses them. tests/conformance tests the guarantees of mailboxes themselves.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include <wherry/wherry.h>

namespace {

constexpr int64_t kTimeout = 3'600'000'000'000;  // an hour: the watchdog ends the test earlier

class MailboxCApi : public ::testing::Test {
 public:
  MailboxCApi(const MailboxCApi&) = delete;
  MailboxCApi& operator=(const MailboxCApi&) = delete;

 protected:
  MailboxCApi() {
    const wherry_mailbox_options options{.budget = 4096,
                                         .header = 64,
                                         .quiet = 0,
                                         .lane = 8192,
                                         .most_peers = 8,
                                         .layout = WHERRY_LAYOUT_TOPOLOGY,
                                         .overflow = 0};
    EXPECT_EQ(wherry_mailbox_open(&options, &to_), 0) << wherry_last_error();
    EXPECT_EQ(wherry_mailbox_open(nullptr, &from_), 0) << wherry_last_error();
    EXPECT_EQ(wherry_mailbox_listen(to_, "wherry+inproc://*:*"), 0) << wherry_last_error();
    EXPECT_GT(wherry_mailbox_address(to_, address_, sizeof address_), 0);
    EXPECT_EQ(wherry_mailbox_connect(from_, address_, WHERRY_TIMEOUT_DEFAULT, &peer_), 0) << wherry_last_error();
    wherry_section section{};
    while (section.outgoing == 0) {
      progress();
      EXPECT_EQ(wherry_mailbox_get_section(from_, peer_, &section), 0);
    }
  }
  ~MailboxCApi() override {
    wherry_mailbox_close(from_);
    wherry_mailbox_close(to_);
  }
  void progress() const {
    wherry_mailbox_wait(from_, 0);
    wherry_mailbox_wait(to_, 0);
  }

  wherry_mailbox to_ = WHERRY_NONE;
  wherry_mailbox from_ = WHERRY_NONE;
  uint32_t peer_ = 0;
  char address_[64] = {};
};

TEST(MailboxCApiConnect, WaitsForAListener) {
  const char* where = "wherry+inproc://0:4322";
  wherry_mailbox from = WHERRY_NONE, to = WHERRY_NONE;
  ASSERT_EQ(wherry_mailbox_open(nullptr, &from), 0);
  ASSERT_EQ(wherry_mailbox_open(nullptr, &to), 0);
  uint32_t peer = 0, sender = 0;
  EXPECT_EQ(wherry_mailbox_connect(from, where, 0, &peer), -ECONNREFUSED);
  ASSERT_EQ(wherry_mailbox_connect(from, where, WHERRY_FOREVER, &peer), 0) << wherry_last_error();
  EXPECT_EQ(wherry_mailbox_try_send(from, peer, "hello", 5), -EAGAIN);
  ASSERT_EQ(wherry_mailbox_listen(to, where), 0) << wherry_last_error();
  while (wherry_mailbox_try_send(from, peer, "hello", 5) == -EAGAIN) {
    wherry_mailbox_wait(from, 0);
    wherry_mailbox_wait(to, 0);
  }
  char buffer[8] = "";
  EXPECT_EQ(wherry_mailbox_receive(to, buffer, sizeof buffer, &sender, kTimeout), 5);
  wherry_mailbox_close(from);
  wherry_mailbox_close(to);
}

TEST_F(MailboxCApi, MessagesPassAndTellWhoSentThem) {
  char buffer[64];
  uint32_t from = UINT32_MAX;
  EXPECT_EQ(wherry_mailbox_try_receive(to_, buffer, sizeof buffer, &from), -EAGAIN);
  EXPECT_EQ(wherry_mailbox_send(from_, peer_, "hello", 5, kTimeout), 5);
  EXPECT_EQ(wherry_mailbox_wait(to_, kTimeout), 1);
  EXPECT_EQ(wherry_mailbox_receive(to_, buffer, 4, &from, kTimeout), -EMSGSIZE);
  EXPECT_EQ(wherry_mailbox_receive(to_, buffer, sizeof buffer, &from, kTimeout), 5);
  EXPECT_EQ(std::memcmp(buffer, "hello", 5), 0);
  EXPECT_EQ(wherry_mailbox_try_send(to_, from, "", 0), 0);
  EXPECT_EQ(wherry_mailbox_receive(from_, buffer, sizeof buffer, &from, kTimeout), 0);
  EXPECT_EQ(from, peer_);
  EXPECT_GT(wherry_mailbox_peer_address(from_, peer_, buffer, sizeof buffer), 0);
  EXPECT_STREQ(buffer, address_);
}

TEST_F(MailboxCApi, ALayoutIsDeclaredAndSeen) {
  EXPECT_EQ(wherry_mailbox_try_send(from_, peer_, "x", 1), 1);
  char buffer[8];
  uint32_t from = UINT32_MAX;
  ASSERT_EQ(wherry_mailbox_receive(to_, buffer, sizeof buffer, &from, kTimeout), 1);
  const uint32_t weight = 0;
  EXPECT_EQ(wherry_mailbox_set_neighbours(to_, &from, &weight, 1), 0);
  wherry_section section{};
  while (section.incoming != 64) {
    progress();
    wherry_mailbox_get_section(to_, from, &section);
  }
  EXPECT_EQ(wherry_mailbox_set_layout(to_, WHERRY_LAYOUT_EQUAL), 0);
  EXPECT_EQ(wherry_mailbox_set_budget(to_, 2048), 0);
  while (section.incoming != 2048) {
    progress();
    wherry_mailbox_get_section(to_, from, &section);
  }
  EXPECT_GT(section.changes, 1U);
}

TEST_F(MailboxCApi, APeerOfWhichMuchIsExpectedHasALane) {
  char buffer[8];
  uint32_t from = UINT32_MAX;
  ASSERT_EQ(wherry_mailbox_send(from_, peer_, "x", 1, kTimeout), 1);
  ASSERT_EQ(wherry_mailbox_receive(to_, buffer, sizeof buffer, &from, kTimeout), 1);
  wherry_section section{};
  ASSERT_EQ(wherry_mailbox_get_section(to_, from, &section), 0);
  const size_t before = section.incoming;
  for (const int wide : {1, 0}) {
    EXPECT_EQ(wherry_mailbox_widen(to_, from, wide), 0);
    while (section.incoming != before + (wide != 0 ? 8192 : 0)) {
      progress();
      wherry_mailbox_get_section(to_, from, &section);
    }
  }
}

TEST_F(MailboxCApi, AProgramThatPollsMakesProgressAndSleepsUntilAMessage) {
  while (wherry_mailbox_progress(to_) == 1) wherry_mailbox_wait(to_, 0);
  EXPECT_EQ(wherry_mailbox_sleep(to_, 1'000'000), 0);
  ASSERT_EQ(wherry_mailbox_send(from_, peer_, "x", 1, kTimeout), 1);
  EXPECT_EQ(wherry_mailbox_sleep(to_, kTimeout), 1);
  EXPECT_EQ(wherry_mailbox_progress(to_), 1);
}

TEST_F(MailboxCApi, APeerThatLeavesIsToldOf) {
  uint32_t peer = UINT32_MAX;
  int error = -1;
  EXPECT_EQ(wherry_mailbox_lost(from_, &peer, &error), 0);
  wherry_mailbox_close(to_);
  to_ = WHERRY_NONE;
  EXPECT_EQ(wherry_mailbox_wait(from_, kTimeout), 1);
  EXPECT_EQ(wherry_mailbox_lost(from_, &peer, &error), 1);
  EXPECT_EQ(peer, peer_);
  EXPECT_EQ(error, 0);
  EXPECT_EQ(wherry_mailbox_send(from_, peer_, "x", 1, kTimeout), -EPIPE);
  EXPECT_EQ(wherry_mailbox_forget(from_, peer_), 0);
  EXPECT_EQ(wherry_mailbox_send(from_, peer_, "x", 1, kTimeout), -EINVAL);
}

TEST_F(MailboxCApi, AnInterruptionEndsAWait) {
  EXPECT_GE(wherry_mailbox_descriptor(to_), 0);
  EXPECT_EQ(wherry_mailbox_interrupt(to_), 0);
  EXPECT_EQ(wherry_mailbox_wait(to_, kTimeout), 1);
}

TEST_F(MailboxCApi, BadArgumentsAreErrors) {
  wherry_mailbox none = WHERRY_NONE;
  uint32_t peer = 0;
  EXPECT_EQ(wherry_mailbox_listen(none, address_), -EBADF);
  EXPECT_EQ(wherry_mailbox_send(none, 0, "x", 1, 0), -EBADF);
  EXPECT_EQ(wherry_mailbox_connect(from_, nullptr, WHERRY_TIMEOUT_DEFAULT, &peer), -EINVAL);
  EXPECT_EQ(wherry_mailbox_set_layout(from_, 7), -EINVAL);
  for (const auto member :
       {&wherry_mailbox_options::header, &wherry_mailbox_options::quiet, &wherry_mailbox_options::lane}) {
    wherry_mailbox_options wrong{};
    wrong.*member = 65;
    EXPECT_EQ(wherry_mailbox_open(&wrong, &none), -EINVAL);
    EXPECT_NE(std::strstr(wherry_last_error(), "a multiple of 64"), nullptr) << wherry_last_error();
  }
}

}  // namespace
