// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/commit/journal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "src/base/child_process.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry::merge {
namespace {

using testing::Eq;
using testing::Optional;
using testing::Pair;
using testing::UnorderedElementsAre;

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

class JournalTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  }
  [[nodiscard]] std::string read(const std::string& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  test::TemporaryDirectory directory_;
  std::string output_ = (directory_.path() / "out").string();
  std::string path_ = Journal::path_of(output_);
};

TEST_F(JournalTest, WithoutOneThereIsNothingToRecover) {
  write(output_, "output");
  EXPECT_THAT(Journal::recover(output_), Eq(std::nullopt));
  EXPECT_EQ(read(output_), "output");
}

TEST_F(JournalTest, TheLastCommitIsCompletedAndWhatFollowsItIsCutOff) {
  write(output_, "0123456789 and what was written for the next commit");
  Journal journal(output_, {8, {}, {{"one", 1}, {"two", 5}}}, false);
  journal.append({10, {{2, bytes_of("ab")}, {7, bytes_of("c")}}, {{"one", 2}}});
  const auto recovered = Journal::recover(output_);
  EXPECT_THAT(recovered, Optional(UnorderedElementsAre(Pair("one", 2), Pair("two", 5))));
  EXPECT_EQ(read(output_), "01ab456c89");
}

// The process was killed while it wrote the record: the previous commit is the last one.
TEST_F(JournalTest, AnIncompleteRecordNeverHappened) {
  write(output_, "0123456789");
  Journal journal(output_, {8, {}, {{"one", 1}}}, false);
  const auto before = std::filesystem::file_size(path_);
  journal.append({10, {{0, bytes_of("XXXX")}}, {{"one", 2}}});
  const std::string whole = read(path_);
  for (std::size_t size = whole.size() - 1; size >= before; --size) {
    write(path_, whole.substr(0, size));
    write(output_, "0123456789");
    ASSERT_THAT(Journal::recover(output_), Optional(UnorderedElementsAre(Pair("one", 1)))) << size;
    ASSERT_EQ(read(output_), "01234567");
  }
}

TEST_F(JournalTest, AnOutputThatWasWrittenAnewHasItsNameAsSoonAsTheJournalSaysSo) {
  write(output_, "old and with holes");
  Journal journal(output_, {18, {}, {{"one", 1}}}, false);
  // Killed before the record was written: the hidden file is ignored.
  write(Journal::hidden(output_), "new");
  EXPECT_THAT(Journal::recover(output_), Optional(UnorderedElementsAre(Pair("one", 1))));
  EXPECT_EQ(read(output_), "old and with holes");
  // Killed after the record was written.
  journal.append({3, {}, {}, true});
  EXPECT_THAT(Journal::recover(output_), Optional(UnorderedElementsAre(Pair("one", 1))));
  EXPECT_EQ(read(output_), "new");
  EXPECT_FALSE(std::filesystem::exists(Journal::hidden(output_)));
  // Killed after the file was renamed.
  EXPECT_THAT(Journal::recover(output_), Optional(UnorderedElementsAre(Pair("one", 1))));
  EXPECT_EQ(read(output_), "new");
}

TEST_F(JournalTest, AFileThatIsBegunAfterTheOutputWasReplacedIsNotTheOutput) {
  for (const bool durable : {false, true}) {
    write(output_, "old");
    Journal journal(output_, {3, {}, {}}, durable);
    write(Journal::hidden(output_), "the new one");
    journal.replace_output(11);
    EXPECT_EQ(read(output_), "the new one");
    write(Journal::hidden(output_), "not whole");
    EXPECT_TRUE(Journal::recover(output_));
    EXPECT_EQ(read(output_), "the new one");
  }
}

TEST_F(JournalTest, AnOutputCannotBeReplacedByAFileThatIsNotThere) {
  write(output_, "old");
  Journal journal(output_, {3, {}, {}}, false);
  EXPECT_THROW(journal.replace_output(3), std::system_error);
  EXPECT_EQ(read(output_), "old");
}

TEST_F(JournalTest, ADamagedRecordIsNoRecord) {
  write(output_, "0123456789");
  Journal journal(output_, {8, {}, {{"one", 1}}}, false);
  const auto before = std::filesystem::file_size(path_);
  journal.append({10, {{0, bytes_of("XXXX")}}, {{"one", 2}}});
  const std::string whole = read(path_);
  for (std::size_t at = before; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    write(path_, damaged);
    write(output_, "0123456789");
    ASSERT_THAT(Journal::recover(output_), Optional(UnorderedElementsAre(Pair("one", 1)))) << at;
  }
}

TEST_F(JournalTest, RecoveringTwiceIsRecoveringOnce) {
  write(output_, "0123456789");
  Journal journal(output_, {10, {{0, bytes_of("ab")}}, {{"one", 3}}}, true);
  const auto once = Journal::recover(output_);
  const std::string content = read(output_);
  EXPECT_EQ(Journal::recover(output_), once);
  EXPECT_EQ(read(output_), content);
}

TEST_F(JournalTest, AnOutputThatLacksWhatTheJournalSaysIsAnError) {
  write(output_, "0123");
  const Journal journal(output_, {10, {}, {}}, false);
  EXPECT_THROW(Journal::recover(output_), std::system_error);
}

TEST_F(JournalTest, KilledBeforeTheOutputHadItsNameThereIsNothing) {
  const Journal journal(output_, {10, {}, {{"one", 1}}}, false);
  EXPECT_THAT(Journal::recover(output_), Eq(std::nullopt));
}

// Its supervisor may be killed, and the output be begun again, while it still ends in order.
TEST_F(JournalTest, AnotherProcessCannotRecoverWhatIsBeingMerged) {
  write(output_, "0123456789");
  const auto recovers = [this] {
    try {
      Journal::recover(output_);
      return true;
    } catch (const std::system_error& error) {
      return error.code().value() != EBUSY;
    }
  };
  Journal journal(output_, {10, {}, {}}, false);
  // One that is written anew is another file.
  for (int i = 0; i < 50; ++i) journal.append({10, {}, {{std::string(100000, 'n'), 1}}});
  Child other([&] { return !recovers(); });
  EXPECT_EQ(other.wait(), 0);
  // A process that merges can, and its journal goes on as another.
  EXPECT_TRUE(recovers());
}

// Nothing is lost by it, and it does not grow for ever.
TEST_F(JournalTest, ALongJournalIsWrittenAnew) {
  write(output_, "0123456789");
  Journal journal(output_, {10, {}, {{"first", 1}}}, false);
  const Commit large{10, {{0, bytes_of(std::string(10, 'x'))}}, {{std::string(100000, 'n'), 1}}};
  std::uintmax_t largest = 0;
  for (int i = 0; i < 200; ++i) {
    journal.append(large);
    largest = std::max(largest, std::filesystem::file_size(path_));
  }
  EXPECT_LT(largest, std::uintmax_t{6} << 20);
  EXPECT_THAT(Journal::recover(output_), Optional(testing::Contains(Pair("first", 1))));
}

TEST_F(JournalTest, RemovedItIsGone) {
  write(output_, "0123456789");
  Journal journal(output_, {10, {}, {}}, false);
  journal.remove();
  EXPECT_THAT(Journal::recover(output_), Eq(std::nullopt));
}

}  // namespace
}  // namespace wherry::merge
