// SPDX-License-Identifier: Apache-2.0
// A program can write anything to the memory that it shares with the mount.
#include "file/mount/write_ring.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "tests/common/program_ring.hpp"

namespace wherry::file::mount {
namespace {

using layout::kWriteRingBytes;
using layout::WriteRingOffer;

pid_t this_thread() { return static_cast<pid_t>(::syscall(SYS_gettid)); }

std::unique_ptr<WriteRing> taken(const ProgramRing& program) {
  WriteRing::Taken taken = WriteRing::take(this_thread(), program.offer());
  EXPECT_EQ(taken.error, 0);
  return std::move(taken.ring);
}

/// Takes the oldest write as text.
std::string take(WriteRing& ring, std::uint64_t room = kWriteRingBytes) {
  const auto write = ring.first();
  if (!write) return "none";
  std::string text = std::to_string(write->offset) + ":";
  for (const auto& part : write->parts) text.append(reinterpret_cast<const char*>(part.data()), part.size());
  ring.remove(write->bytes());
  ring.publish(room);
  return text;
}

TEST(WriteRing, GivesWritesInTheirOrderAroundTheEndOfTheMemory) {
  const ProgramRing program;
  const auto ring = taken(program);
  for (std::uint64_t written = 0; written < 3 * kWriteRingBytes; written += 1000) {
    const std::string data(1000, static_cast<char>('a' + written / 1000 % 26));
    ASSERT_TRUE(program.write(written, data));
    ASSERT_TRUE(program.write(written, "again"));
    EXPECT_EQ(take(*ring), std::to_string(written) + ":" + data);
    EXPECT_EQ(take(*ring), std::to_string(written) + ":again");
    EXPECT_EQ(take(*ring), "none");
  }
  EXPECT_FALSE(ring->take_broken());
}

TEST(WriteRing, GivesTheRestOfAWriteThatWasRemovedInPart) {
  const ProgramRing program;
  const auto ring = taken(program);
  program.write(100, "abcdef");
  EXPECT_TRUE(ring->first().has_value());
  ring->remove(2);
  EXPECT_EQ(take(*ring), "102:cdef");
  EXPECT_EQ(take(*ring), "none");
}

TEST(WriteRing, AllowsTheProgramNoMoreThanThereIsRoomFor) {
  const ProgramRing program;
  const auto ring = taken(program);
  EXPECT_FALSE(program.has_room(1));
  ring->publish(100);
  EXPECT_FALSE(program.has_room(65));
  ASSERT_TRUE(program.has_room(4));
  program.write(0, "four");
  EXPECT_EQ(ring->expected(), 100U);
  EXPECT_EQ(take(*ring, 0), "0:four");
  EXPECT_FALSE(program.has_room(4));
  ring->publish(1000);
  EXPECT_TRUE(program.has_room(900));
  ring->publish(0);
  EXPECT_TRUE(program.has_room(900)) << "what was allowed stays allowed";
  ring->seal();
  EXPECT_EQ(ring->expected(), 0U);
}

TEST(WriteRing, TakesNothingAfterTheSealAndAllBeforeIt) {
  const ProgramRing program;
  const auto ring = taken(program);
  program.write(0, "before");
  ring->seal();
  EXPECT_FALSE(program.write(6, "after"));
  EXPECT_TRUE(ring->is_sealed());
  EXPECT_EQ(take(*ring), "0:before");
  EXPECT_EQ(take(*ring), "none");
}

TEST(WriteRing, ContinuesWhereAnEarlierDaemonHasEnded) {
  const ProgramRing program;
  {
    const auto ring = taken(program);
    program.write(0, "first");
    program.write(5, "second");
    EXPECT_EQ(take(*ring), "0:first");
  }
  const auto ring = WriteRing::resume(UniqueFd(::dup(program.descriptor())));
  ASSERT_NE(ring, nullptr);
  EXPECT_EQ(take(*ring), "5:second");
}

TEST(WriteRing, SleepsOnlyWithoutAWrite) {
  const ProgramRing program;
  const auto ring = taken(program);
  EXPECT_EQ(take(*ring), "none");
  EXPECT_TRUE(ring->sleep());
  EXPECT_EQ(program.header().sleeps, 1U);
  program.write(0, "x");
  EXPECT_FALSE(ring->sleep());
  EXPECT_EQ(program.header().sleeps, 0U);
}

TEST(WriteRing, RefusesOtherMemory) {
  const ProgramRing program;
  const auto error_of = [](const WriteRingOffer& offer) { return WriteRing::take(this_thread(), offer).error; };
  WriteRingOffer offer = program.offer();
  offer.random[3] ^= 1;
  EXPECT_EQ(error_of(offer), EINVAL) << "of another program";
  offer = program.offer();
  offer.version++;
  EXPECT_EQ(error_of(offer), EINVAL);
  offer = program.offer();
  offer.descriptor = 12345;
  EXPECT_EQ(error_of(offer), EPERM);
  const UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  offer.descriptor = file.get();
  EXPECT_EQ(error_of(offer), EPERM) << "its close could wait for this mount";
  const UniqueFd shrinks(::memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(shrinks.get(), static_cast<off_t>(layout::kWriteRingMemory)), 0);
  offer.descriptor = shrinks.get();
  EXPECT_EQ(error_of(offer), EINVAL) << "could be made shorter";
  ASSERT_EQ(::ftruncate(shrinks.get(), 4096), 0);
  ASSERT_EQ(::fcntl(shrinks.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(error_of(offer), EINVAL) << "is too short";
  EXPECT_EQ(WriteRing::take(1 << 30, program.offer()).error, EPERM) << "of no process";
  program.header().magic = 0;
  EXPECT_EQ(error_of(program.offer()), EINVAL);
}

TEST(WriteRing, EndsWithWhatCannotBe) {
  const auto expect_broken = [](auto damage, const char* what) {
    const ProgramRing program;
    const auto ring = taken(program);
    program.write(0, "sound");
    program.write(5, "damaged");
    EXPECT_EQ(take(*ring), "0:sound");
    damage(program);
    EXPECT_EQ(take(*ring), "none") << what;
    EXPECT_TRUE(ring->take_broken()) << what;
    EXPECT_FALSE(ring->take_broken()) << what;
    EXPECT_TRUE(ring->is_sealed()) << what;
    EXPECT_EQ(take(*ring), "none") << what;
    ring->remove(0);
    ring->publish(kWriteRingBytes);
  };
  const auto at = [](const ProgramRing& program) -> auto& { return program.record_at(program.header().last); };
  expect_broken([](const auto& program) { program.header().last += 8; }, "position");
  expect_broken([](const auto& program) { program.header().last += 2 * kWriteRingBytes; }, "position far away");
  expect_broken([](const auto& program) { program.header().last = UINT64_MAX - 1; }, "last position");
  expect_broken([](const auto& program) { program.header().last += 32; }, "position within a record");
  expect_broken([&](const auto& program) { at(program).length = UINT32_MAX; }, "length");
  expect_broken([&](const auto& program) { at(program).length = kWriteRingBytes; }, "length of the ring");
  expect_broken([&](const auto& program) { at(program).offset = INT64_MAX; }, "offset");
}

}  // namespace
}  // namespace wherry::file::mount
