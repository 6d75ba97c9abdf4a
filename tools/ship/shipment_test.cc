// SPDX-License-Identifier: Apache-2.0
#include "ship/shipment.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/unique_fd.hpp"
#include "ship/tree.hpp"
#include "tests/common/memory_channel.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry::tools {
namespace {

using layout::ShipKind;
using layout::ShipRecord;

// A shipment to a collector that keeps its records and answers nothing.
class ShipmentTest : public testing::Test {
 protected:
  std::string ship(const std::string& text, long pretended_growth, bool touched = false) {
    const std::filesystem::path path = root_.path() / "file";
    std::ofstream(path, std::ios::binary) << text;
    const UniqueFd file(::open(path.c_str(), O_RDONLY));
    struct stat status{};
    EXPECT_EQ(::fstat(file.get(), &status), 0);
    status.st_size += pretended_growth;
    if (touched) status.st_mtim.tv_sec -= 1;
    Results results(silence_, [](const std::string&, const std::string&) {});
    Shipment::Counts counts;
    Shipment shipment(channel_, results, counts);
    return shipment.file("file", file.get(), status);
  }

  // The kinds of all records; what follows a record must be exactly what it announces.
  std::vector<ShipKind> kinds() {
    std::vector<ShipKind> found;
    std::span<const std::byte> rest = channel_.sent();
    while (!rest.empty()) {
      ShipRecord record;
      EXPECT_GE(rest.size(), sizeof record);
      std::memcpy(&record, rest.data(), sizeof record);
      const auto kind = static_cast<ShipKind>(record.kind);
      const std::size_t data = kind == ShipKind::data ? record.length : 0;
      found.push_back(kind);
      EXPECT_GE(rest.size(), sizeof record + record.path_bytes + data);
      rest = rest.subspan(sizeof record + record.path_bytes + data);
    }
    return found;
  }

  test::TemporaryDirectory root_;
  test::MemoryChannel channel_;
  test::MemoryChannel silence_;
};

TEST_F(ShipmentTest, AFileEndsWithItsHash) {
  EXPECT_EQ(ship("content", 0), "");
  EXPECT_EQ(kinds(), (std::vector{ShipKind::file, ShipKind::data, ShipKind::file_end}));
}

TEST_F(ShipmentTest, AnEmptyFileHasNoData) {
  EXPECT_EQ(ship("", 0), "");
  EXPECT_EQ(kinds(), (std::vector{ShipKind::file, ShipKind::file_end}));
}

TEST_F(ShipmentTest, AFileThatShrankIsAbandonedAfterAsManyBytesAsWerePromised) {
  EXPECT_NE(ship(std::string(10'000, 'x'), +20'000).find("changed during the read"), std::string::npos);
  EXPECT_EQ(kinds().back(), ShipKind::abandon);
}

TEST_F(ShipmentTest, AFileThatGrewIsAbandoned) {
  EXPECT_NE(ship(std::string(10'000, 'x'), -1), "");
  EXPECT_EQ(kinds().back(), ShipKind::abandon);
}

TEST_F(ShipmentTest, AFileThatWasWrittenMeanwhileIsAbandoned) {
  EXPECT_NE(ship("content", 0, true), "");
  EXPECT_EQ(kinds().back(), ShipKind::abandon);
}

TEST_F(ShipmentTest, DataIsCutSoThatARefusalIsHeededSoon) {
  EXPECT_EQ(ship(std::string(layout::kShipMaxData * 2 + 1, 'x'), 0), "");
  EXPECT_EQ(kinds(), (std::vector{ShipKind::file, ShipKind::data, ShipKind::data, ShipKind::data, ShipKind::file_end}));
}

TEST(Names, WithoutADirectoryTheLastComponentCounts) {
  EXPECT_EQ(base_name("a/b"), "b");
  EXPECT_EQ(base_name("a/b///"), "b");
  EXPECT_EQ(base_name("/"), "");
  EXPECT_EQ(base_name("."), "");
  EXPECT_EQ(base_name("a/.."), "");
  EXPECT_EQ(base_name("a/./"), "");
  EXPECT_EQ(base_name("..."), "...");
}

TEST(Names, WithADirectoryTheyStayButForWhatMeansNothing) {
  EXPECT_EQ(plain_name("./a//b/./c/"), "a/b/c");
  EXPECT_EQ(plain_name("."), "");
  EXPECT_EQ(plain_name("../a"), "../a");
  EXPECT_EQ(plain_name("/a/b"), "/a/b");
}

}  // namespace
}  // namespace wherry::tools
