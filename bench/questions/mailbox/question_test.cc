// SPDX-License-Identifier: Apache-2.0
#include "bench/questions/mailbox/question.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/systems/mailbox/systems.hpp"

namespace wherry::bench::mailbox {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Row row(const std::string& system, const std::string& metric, double median) {
  return {.bench = "mailbox", .system = system, .mode = "handover", .size = 8, .metric = metric, .median = median};
}

TEST(MailboxQuestion, EverySizeIsSentOneWayAndThrownToAndFroInEachMode) {
  Options options;
  options.sizes = {4, 4096};
  options.modes = {"handover", "touched"};
  EXPECT_THAT(points(options), SizeIs(8));
  EXPECT_EQ(points(options)[0].sample.question, Question::stream);
  EXPECT_EQ(points(options)[2].sample.question, Question::latency);
  EXPECT_TRUE(points(options)[4].sample.touched);
}

TEST(MailboxQuestion, ASystemIsOneForEachNumberOfProcessesStarted) {
  const MailboxSystem::Description equal{"mailbox-equal", "", Layout::equal, 64};
  const MailboxSystem system(equal);
  StartedMailboxes started(system, {.processes = 48, .budget = 8192});
  EXPECT_EQ(started.name(), "mailbox-equal/48");
  EXPECT_EQ(started.bystanders(), 46U);
}

TEST(MailboxQuestion, TheNumberStartedIsTheRowsAndTheShareThatIsLeftIsAFigure) {
  std::vector<Row> rows{row("mailbox-equal/2", "GB/s", 4), row("mailbox-equal/48", "GB/s", 1),
                        row("mailbox-equal/48", "ns_p50", 700), row("wherry", "GB/s", 8)};
  complete(rows);
  EXPECT_EQ(rows[0].system, "mailbox-equal");
  EXPECT_EQ(rows[0].senders, 2U);
  EXPECT_EQ(rows[1].senders, 48U);
  EXPECT_EQ(rows[3].senders, 2U);
  ASSERT_THAT(rows, SizeIs(5));
  EXPECT_EQ(rows[4].metric, "share_of_fewest");
  EXPECT_EQ(rows[4].senders, 48U);
  EXPECT_EQ(rows[4].median, 0.25);
}

TEST(MailboxQuestion, ReceivingCostsWhatAMessageTakesBySendersConnected) {
  std::vector<Row> rows{row("mailbox-adaptive/1001", "msgs/s", 1e7), row("wherry", "GB/s", 8)};
  complete(rows);
  EXPECT_THAT(receive_costs(rows), ElementsAre(AllOf(Field(&Row::metric, "ns_receive"), Field(&Row::senders, 1000U),
                                                     Field(&Row::median, 100))));
}

TEST(MailboxQuestion, TablesHaveTheNumbersStartedAndTheSendersConnected) {
  std::vector<Row> rows{row("mailbox-equal/2", "GB/s", 4), row("mailbox-equal/48", "GB/s", 1)};
  complete(rows);
  std::vector<Row> received{row("mailbox-equal/1001", "msgs/s", 1e7)};
  complete(received);
  for (const Row& cost : receive_costs(received)) rows.push_back(cost);
  Options options;
  options.sizes = {8};
  options.senders = {2, 48};
  options.modes = {"handover"};
  const std::string text = tables(rows, options);
  EXPECT_THAT(text, HasSubstr("GB/s, 2 of 48 processes started"));
  EXPECT_THAT(text, HasSubstr("GB/s as a share of that with 2, 2 of 48"));
  EXPECT_THAT(text, HasSubstr("GB/s, messages of 8 B, by number started"));
  EXPECT_THAT(text, HasSubstr("by number of senders connected"));
}

}  // namespace
}  // namespace wherry::bench::mailbox
