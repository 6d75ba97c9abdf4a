// SPDX-License-Identifier: Apache-2.0
// A connector whose handshake contradicts itself is refused before it is answered: it gets an error at once, the
// listener's log names it and the reason, and the next connector is served.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "layout/mailbox_page.hpp"
#include "layout/message_page.hpp"
#include "message/handshake.hpp"
#include "stream/handshake.hpp"
#include "tests/fault/fault.hpp"
#include "window/space.hpp"

namespace wherry::fault {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kPage = 4096;

struct Case {
  fabric::Offer offer;
  const char* reason;
};

/// The offer, with another greeting.
template <class Greeting>
Case changed(fabric::Offer offer, const char* reason, const std::function<void(Greeting&)>& change) {
  Greeting greeting{};
  std::memcpy(&greeting, offer.greeting.data(), sizeof greeting);
  change(greeting);
  std::memcpy(offer.greeting.data(), &greeting, sizeof greeting);
  return {std::move(offer), reason};
}

/// `poll` lets connectors in. Returns what the connector is told, and appends what is logged.
std::string refusal(const Address& where, const fabric::Offer& offer, const std::function<void()>& poll,
                    std::string& log) {
  const auto connecting = fabric::find("shm").connect(where, offer);
  ::testing::internal::CaptureStderr();
  poll();
  log = ::testing::internal::GetCapturedStderr();
  try {
    return connecting->try_finish() == nullptr ? "it stays pending" : "it was let in";
  } catch (const Error& error) {
    EXPECT_EQ(error.code().value(), ECONNREFUSED);
    return error.what();
  }
}

/// Each case at a listener of its own: one that refuses many warns of some.
void expect_refused(const Case& wrong, const Address& where, const std::function<void()>& poll) {
  std::string log;
  EXPECT_THAT(refusal(where, wrong.offer, poll, log), HasSubstr("or refused this connector")) << wrong.reason;
  EXPECT_THAT(log, HasSubstr("warning: refused a connector to " + where.to_string() + ", process " +
                             std::to_string(::getpid()) + ": " + wrong.reason));
}

TEST(HostileHandshake, OfAStreamIsRefusedAtOnce) {
  using layout::StreamGreeting;
  const auto with = [](const char* reason, const std::function<void(StreamGreeting&)>& change) {
    return changed<StreamGreeting>(stream::offer_of({.own = kPage}), reason, change);
  };
  const char* capacity = "its ring's capacity is not a power of two from 4 KiB to 1 GiB";
  const char* limit = "its limit on the use of a ring is not a power of two from 4 KiB up";
  const std::vector<Case> cases{
      with(capacity, [](StreamGreeting& greeting) { greeting.capacity = 0; }),
      with(capacity, [](StreamGreeting& greeting) { greeting.capacity = kPage - 1; }),
      with(capacity, [](StreamGreeting& greeting) { greeting.capacity = UINT64_MAX; }),
      with(limit, [](StreamGreeting& greeting) { greeting.most = kPage + 1; }),
      with("its ring is larger than its segment", [](StreamGreeting& greeting) { greeting.capacity = 2 * kPage; }),
      with("its segment has no room for its windows",
           [](StreamGreeting& greeting) { greeting.features = layout::kStreamWindows; })};
  for (const Case& wrong : cases) {
    Listener listener = listen("wherry+shm://*:*");
    expect_refused(wrong, listener.local(), [&] { EXPECT_FALSE(listener.try_accept().has_value()); });
    Connecting good = start_connect(listener.local().to_string());
    EXPECT_TRUE(listener.accept(kTimeout).is_open());
    EXPECT_TRUE(good.try_finish().has_value());
  }
}

TEST(HostileHandshake, OfASubscriberIsRefusedAtOnce) {
  using layout::MessageGreeting;
  const fabric::Offer good = message::subscribers_offer(16, Overflow::wait);
  for (const Case& wrong :
       {changed<MessageGreeting>(good, "its queue is not a power of two from 1 to 65536 messages",
                                 [](MessageGreeting& greeting) { greeting.queue = 15; }),
        changed<MessageGreeting>(good, "its queue is larger than its segment",
                                 [](MessageGreeting& greeting) { greeting.queue = layout::kMessageMaxQueue; })}) {
    Publisher publisher;
    publisher.listen("wherry+shm://*:*");
    expect_refused(wrong, publisher.local(), [&] { publisher.admit(0, std::chrono::nanoseconds(0)); });
  }
}

TEST(HostileHandshake, OfAPublisherIsRefusedAtOnce) {
  using layout::MessageGreeting;
  const Case wrong = changed<MessageGreeting>(message::publishers_offer(fabric::find("shm").share(kPage)),
                                              "its queue is not a power of two from 1 to 65536 messages",
                                              [](MessageGreeting& greeting) { greeting.queue += 1; });
  Subscriber subscriber;
  subscriber.listen("wherry+shm://*:*");
  expect_refused(wrong, subscriber.local(), [&] { subscriber.admit(0, std::chrono::nanoseconds(0)); });
}

TEST(HostileHandshake, OfAMailboxIsRefusedAtOnce) {
  using layout::MailboxGreeting;
  fabric::Offer offer{.segment_bytes = kPage};
  const MailboxGreeting greeting{.magic = layout::kMailboxMagic,
                                 .version = layout::kMailboxVersion,
                                 .mailbox = 1,
                                 .header = layout::kMailboxLine,
                                 .listens = 0,
                                 .node = 0,
                                 .port = 0,
                                 .reserved0 = {},
                                 .overflow = 0,
                                 .early = 0,
                                 .claims = 0,
                                 .reserved = {}};
  std::memcpy(offer.greeting.data(), &greeting, sizeof greeting);
  for (const Case& wrong :
       {changed<MailboxGreeting>(offer, "its header is not a multiple of 64 bytes",
                                 [](MailboxGreeting& one) { one.header = 65; }),
        changed<MailboxGreeting>(offer, "its header is larger than its segment",
                                 [](MailboxGreeting& one) { one.header = 2 * kPage; }),
        changed<MailboxGreeting>(offer, "its overflow is larger than its segment",
                                 [](MailboxGreeting& one) { one.overflow = 2 * kPage; }),
        changed<MailboxGreeting>(offer, "its mailbox has no number", [](MailboxGreeting& one) { one.mailbox = 0; })}) {
    Mailbox mailbox;
    mailbox.listen(Address::parse("wherry+shm://*:*"));
    expect_refused(wrong, mailbox.local(), [&] { mailbox.wait(std::chrono::nanoseconds(0)); });
  }
}

TEST(HostileHandshake, OfManyConnectorsSomeAreWarnedOfAndTheOthersCounted) {
  constexpr int kConnectors = 100;
  std::optional<Listener> listener = listen("wherry+shm://*:*");
  const Case wrong = changed<layout::StreamGreeting>(stream::offer_of({.own = kPage}), "",
                                                     [](layout::StreamGreeting& greeting) { greeting.capacity = 1; });
  std::string all;
  for (int i = 0; i < kConnectors; ++i) {
    std::string log;
    (void)refusal(listener->local(), wrong.offer, [&] { (void)listener->try_accept(); }, log);
    all += log;
  }
  ::testing::internal::CaptureStderr();
  listener.reset();
  all += ::testing::internal::GetCapturedStderr();
  int named = 0;
  int left_out = 0;
  std::istringstream lines(all);
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view kCount = "refused connectors: ";
    if (const auto at = line.find(kCount); at != std::string::npos) {
      left_out += std::stoi(line.substr(at + kCount.size()));
    } else {
      ++named;
    }
  }
  EXPECT_LT(named, kConnectors);
  EXPECT_EQ(named + left_out, kConnectors) << all;
}

}  // namespace
}  // namespace wherry::fault
