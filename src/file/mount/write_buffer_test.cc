// SPDX-License-Identifier: Apache-2.0
// Whenever a mount is killed, the memory contains exactly what was acknowledged.
#include "file/mount/write_buffer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <wherry/error.hpp>

#include "file/mount/replay.hpp"
#include "tests/common/program_ring.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file::mount {
namespace {

constexpr std::size_t kPiece = WriteBuffer::kPiece;
const Identity kFile{.device = 7, .inode = 8, .born_seconds = 9, .born_nanoseconds = 10};

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A copy of a memfd in its current state.
UniqueFd copy_of(int memory) {
  struct stat found{};
  EXPECT_EQ(::fstat(memory, &found), 0);
  std::string all(static_cast<std::size_t>(found.st_size), '\0');
  EXPECT_EQ(::pread(memory, all.data(), all.size(), 0), found.st_size);
  UniqueFd copy(::memfd_create("copy", MFD_CLOEXEC));
  EXPECT_EQ(::pwrite(copy.get(), all.data(), all.size(), 0), found.st_size);
  return copy;
}

class WriteBufferTest : public ::testing::Test {
 protected:
  UniqueFd memory_ = WriteBuffer::make(8 * kPiece);
  WriteBuffer buffer_{UniqueFd(::dup(memory_.get()))};
};

TEST_F(WriteBufferTest, KeepsAsMuchAsItHasRoomFor) {
  const auto file = buffer_.add_file(kFile, "file");
  ASSERT_TRUE(file);
  const std::string piece(kPiece, 'p');
  std::vector<WriteBuffer::RecordNumber> records;
  while (const auto record = buffer_.add(*file, records.size() * kPiece, bytes_of(piece))) records.push_back(*record);
  EXPECT_EQ(records.size(), 8U);
  buffer_.remove(records.front());
  const auto record = buffer_.add(*file, 5, bytes_of("first "));
  ASSERT_TRUE(record);
  EXPECT_EQ(buffer_.extend(*record, bytes_of("second")), 6U);
  EXPECT_EQ(text_of(buffer_.data(*record)), "first second");
  EXPECT_EQ(buffer_.offset(*record), 5U);
  EXPECT_EQ(buffer_.extend(*record, bytes_of(piece)), kPiece - 12);
  EXPECT_EQ(buffer_.extend(*record, bytes_of(piece)), 0U);
}

/// A random walk. After each step the memory is read as the next program would read it.
TEST_F(WriteBufferTest, AtEachMomentWhatWasKeptIsFoundInItsOrder) {
  struct Record {
    WriteBuffer::RecordNumber number;
    std::uint64_t offset;
    std::string data;
  };
  std::mt19937 random(1);
  std::deque<Record> model;
  const auto file = buffer_.add_file(kFile, "file");
  std::uint64_t size = 0;
  for (int step = 0; step < 300; ++step) {
    const std::string data(random() % 5000 + 1, static_cast<char>('a' + step % 26));
    switch (random() % 4) {
      case 0:
      case 1:
        if (const auto added = buffer_.add(*file, random(), bytes_of(data)))
          model.push_back({*added, buffer_.offset(*added), data});
        break;
      case 2:
        if (!model.empty()) model.back().data += data.substr(0, buffer_.extend(model.back().number, bytes_of(data)));
        break;
      default:
        if (!model.empty()) buffer_.remove(model.front().number);
        if (!model.empty()) model.pop_front();
        ++size;
        buffer_.set_written(*file, size, size + 5);
        buffer_.set_sending(*file, size % 2 == 0);
        buffer_.rename(*file, "name " + std::to_string(size));
    }
    const WriteBuffer next(copy_of(memory_.get()));
    const auto left = next.left();
    ASSERT_EQ(left.size(), 1U);
    EXPECT_EQ(left[0].identity, kFile);
    EXPECT_EQ(left[0].name, size == 0 ? "file" : "name " + std::to_string(size));
    EXPECT_EQ(left[0].size, size);
    EXPECT_EQ(left[0].sending, size != 0 && size % 2 == 0);
    ASSERT_EQ(left[0].records.size(), model.size());
    for (std::size_t i = 0; i < model.size(); ++i) {
      EXPECT_EQ(next.offset(left[0].records[i]), model[i].offset);
      EXPECT_EQ(text_of(next.data(left[0].records[i])), model[i].data);
    }
  }
}

TEST_F(WriteBufferTest, WhatTheNextProgramKeepsComesBehindWhatWasLeft) {
  const auto file = buffer_.add_file(kFile, "file");
  ASSERT_TRUE(buffer_.add(*file, 0, bytes_of("first")));
  WriteBuffer next(copy_of(memory_.get()));
  ASSERT_TRUE(next.add(*file, 0, bytes_of("second")));
  const auto left = next.left();
  ASSERT_EQ(left.at(0).records.size(), 2U);
  EXPECT_EQ(text_of(next.data(left[0].records[1])), "second");
}

TEST_F(WriteBufferTest, ARecordThatIsNotCommittedIsNotThere) {
  const auto file = buffer_.add_file(kFile, "file");
  const auto record = buffer_.add(*file, 0, bytes_of("data"));
  const UniqueFd cut = copy_of(memory_.get());
  const std::size_t head = sizeof(layout::WriteBufferHeader) + layout::kWriteBufferFiles * sizeof(layout::WriteFile);
  const std::uint64_t not_yet = 0;
  ASSERT_EQ(
      ::pwrite(cut.get(), &not_yet, sizeof not_yet, static_cast<off_t>(head + *record * sizeof(layout::WriteRecord))),
      8);
  const WriteBuffer next(UniqueFd(::dup(cut.get())));
  EXPECT_TRUE(next.left().at(0).records.empty());
}

TEST_F(WriteBufferTest, RecordsOfAFileThatWasRemovedAreNoneOfTheNextFile) {
  const auto file = buffer_.add_file(kFile, "file");
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(buffer_.add(*file, 0, bytes_of("data")));
  buffer_.remove_file(*file);  // and the program is killed
  WriteBuffer next(copy_of(memory_.get()));
  EXPECT_TRUE(next.left().empty());
  const auto other = next.add_file({.device = 7, .inode = 9}, "other");
  ASSERT_EQ(other, file);
  ASSERT_EQ(next.left().size(), 1U);
  EXPECT_TRUE(next.left()[0].records.empty());
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(next.add(*other, 0, bytes_of("data"))) << "no room";
}

TEST_F(WriteBufferTest, NothingInTheMemoryLeadsOutOfIt) {
  std::mt19937 random(2);
  const auto file = buffer_.add_file(kFile, "file");
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(buffer_.add(*file, 0, bytes_of("data")));
  const std::size_t head = sizeof(layout::WriteBufferHeader) + layout::kWriteBufferFiles * sizeof(layout::WriteFile);
  for (int i = 0; i < 50; ++i) {
    const UniqueFd broken = copy_of(memory_.get());
    for (int k = 0; k < 100; ++k) {
      const std::uint64_t word = random() * std::uint64_t{0x100000001};
      const std::size_t at = k % 2 == 0 ? head + random() % (8 * sizeof(layout::WriteRecord))
                                        : sizeof(layout::WriteBufferHeader) + random() % sizeof(layout::WriteFile);
      ASSERT_EQ(::pwrite(broken.get(), &word, 8, static_cast<off_t>(at)), 8);
    }
    const WriteBuffer next(UniqueFd(::dup(broken.get())));
    for (const auto& left : next.left()) {
      for (const auto record : left.records) EXPECT_LE(next.data(record).size(), kPiece);
    }
  }
  const UniqueFd other(::memfd_create("other", MFD_CLOEXEC));
  EXPECT_THROW(WriteBuffer(UniqueFd(::dup(other.get()))), Error);
  ASSERT_EQ(::ftruncate(memory_.get(), 100), 0);
  EXPECT_THROW(WriteBuffer(UniqueFd(::dup(memory_.get()))), Error);
}

class Replaying : public ::testing::Test {
 protected:
  Replaying() { std::ofstream(path()) << "content"; }
  [[nodiscard]] std::filesystem::path path() const { return served_.root() / "file"; }
  /// Notes the file's state as a mount does.
  WriteBuffer::FileNumber note(bool appends = false) {
    FileStatus status{};
    EXPECT_EQ(host_.names().status("file", false, status), 0);
    Identity identity = identity_of(status);
    const auto file = buffer_.add_file(identity, "file", appends);
    const auto time = status.modified;
    buffer_.set_written(*file, status.size,
                        static_cast<std::uint64_t>(time.seconds) * 1'000'000'000 + time.nanoseconds);
    return *file;
  }
  /// Keeps a write as a mount does.
  WriteBuffer::FileNumber keep(std::uint64_t offset, const std::string& data) {
    const auto file = note();
    EXPECT_TRUE(buffer_.add(file, offset, bytes_of(data)));
    return file;
  }

  using FileStatus = layout::FileStatus;
  ServedDirectory served_;
  Host host_{served_.client()};
  WriteBuffer buffer_{WriteBuffer::make(8 * kPiece)};
};

TEST_F(Replaying, WritesWhatWasLeft) {
  const auto file = keep(7, " and more");
  ASSERT_TRUE(buffer_.add(file, 0, bytes_of("CON")));
  const auto replayed = replay(buffer_, host_);
  ASSERT_EQ(replayed.size(), 1U);
  EXPECT_EQ(replayed[0].name, "file");
  EXPECT_EQ(replayed[0].bytes, 12U);
  EXPECT_EQ(replayed[0].error, 0);
  EXPECT_EQ(content_of(path()), "CONtent and more");
  EXPECT_TRUE(buffer_.left().empty());
  EXPECT_TRUE(replay(buffer_, host_).empty());
}

TEST_F(Replaying, DoesNotWriteOverWhatOthersHaveWritten) {
  keep(0, "card");
  std::ofstream(path()) << "of the host";
  EXPECT_EQ(replay(buffer_, host_).at(0).error, ESTALE);
  EXPECT_EQ(content_of(path()), "of the host");
}

TEST_F(Replaying, DoesNotWriteToAnotherFileOfTheName) {
  keep(0, "card");
  std::ofstream(served_.root() / "other") << "content";
  std::filesystem::rename(served_.root() / "other", path());
  EXPECT_EQ(replay(buffer_, host_).at(0).error, ESTALE);
  keep(0, "card");
  std::filesystem::remove(path());
  EXPECT_EQ(replay(buffer_, host_).at(0).error, ESTALE);
}

TEST_F(Replaying, FindsTheFileByTheNameThatItHasByNow) {
  keep(0, "CARD");
  std::filesystem::rename(path(), served_.root() / "moved");
  std::ofstream(path()) << "content";  // another file
  EXPECT_EQ(
      replay(buffer_, host_, {}, [](const Identity&) { return std::vector<std::string>{"gone", "moved"}; }).at(0).error,
      0);
  EXPECT_EQ(content_of(served_.root() / "moved"), "CARDent");
  EXPECT_EQ(content_of(path()), "content");
}

TEST_F(Replaying, FindsTheFileByTheNameOfARenameThatIsUnderWay) {
  keep(0, "CARD");
  host_.names().announce_rename("file", "moved", 0);
  std::filesystem::rename(path(), served_.root() / "moved");
  EXPECT_EQ(replay(buffer_, host_).at(0).error, 0);
  EXPECT_EQ(content_of(served_.root() / "moved"), "CARDent");
  host_.names().settle_rename("file", "moved", 0, false);
}

TEST_F(Replaying, DropsSetIdBitsAsAPlainWriteDoes) {
  const auto mode_after = [&](std::uint32_t by) {
    EXPECT_EQ(::chmod(path().c_str(), 06755), 0);
    buffer_.set_drops(keep(0, "CARD"), by);
    EXPECT_EQ(replay(buffer_, host_).at(0).error, 0);
    struct stat found{};
    EXPECT_EQ(::stat(path().c_str(), &found), 0);
    return found.st_mode & 07777;
  };
  EXPECT_EQ(mode_after(0), 06755U) << "by root";
  EXPECT_EQ(mode_after(layout::kFileWriteByUser), 0755U);
  EXPECT_EQ(mode_after(0), 06755U) << "a later file with the same number";
}

TEST_F(Replaying, RepeatsWhatWasOnItsWay) {
  const auto file = keep(7, " and more");
  buffer_.set_sending(file, true);
  std::ofstream(path(), std::ios::app) << " and more";
  ASSERT_TRUE(buffer_.add(file, 16, bytes_of(", later")));
  EXPECT_EQ(replay(buffer_, host_).at(0).error, 0);
  EXPECT_EQ(content_of(path()), "content and more, later");
}

TEST_F(Replaying, AppendsWhatARingHasOnce) {
  // The earlier daemon was killed between storing writes of the ring and removing them from it.
  for (const std::string stored : {"", " one", " one tw", " one two", " one two three"}) {
    std::ofstream(path()) << "content";
    const ProgramRing program;
    program.write(7, " one");
    program.write(11, " two");
    program.write(15, " three");
    const auto file = note(true);
    if (!stored.empty()) {
      ASSERT_TRUE(buffer_.add(file, 7, bytes_of(stored)));
    }
    LeftRings rings;
    rings[file] = WriteRing::resume(UniqueFd(::dup(program.descriptor())));
    EXPECT_EQ(replay(buffer_, host_, {}, {}, rings).at(0).error, 0);
    EXPECT_EQ(content_of(path()), "content one two three");
  }
}

TEST_F(Replaying, SucceedsIfAllAppendsOfARingWereMade) {
  const ProgramRing program;
  program.write(3, "tent");
  LeftRings rings;
  rings[note(true)] = WriteRing::resume(UniqueFd(::dup(program.descriptor())));
  EXPECT_EQ(replay(buffer_, host_, {}, {}, rings).at(0).error, 0);
  EXPECT_EQ(content_of(path()), "content");
}

TEST_F(Replaying, TakesNothingFromARingThatComesLater) {
  const ProgramRing program;
  program.write(0, "CON");
  LeftRings rings;
  rings[note()] = WriteRing::resume(UniqueFd(::dup(program.descriptor())));
  EXPECT_FALSE(program.write(3, "TENT")) << "it is sealed";
  program.header().last &= ~layout::kWriteRingSealed;
  EXPECT_TRUE(program.write(3, "TENT"));
  EXPECT_EQ(replay(buffer_, host_, {}, {}, rings).at(0).error, 0);
  EXPECT_EQ(content_of(path()), "CONtent");
}

TEST_F(Replaying, DoesNotTakeWhatOthersHaveWrittenForWhatWasOnItsWay) {
  buffer_.set_sending(keep(7, " and more"), true);
  std::ofstream(path(), std::ios::app) << " of the host";
  EXPECT_EQ(replay(buffer_, host_).at(0).error, ESTALE);
  EXPECT_EQ(content_of(path()), "content of the host");
}

}  // namespace
}  // namespace wherry::file::mount
