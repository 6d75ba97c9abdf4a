// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/processor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/common/temporary_directory.hpp"

namespace wherry::bench {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

Processor processor_of(const std::string& cpuinfo) {
  std::istringstream lines(cpuinfo);
  return processor_in(lines);
}

TEST(Processor, MakeFamilyAndModelAreThoseOfTheFirstEntry) {
  const Processor amd = processor_of(
      "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n\n"
      "processor\t: 1\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n");
  EXPECT_EQ(text_of(amd), "AMD family 26 model 2");
  EXPECT_EQ(processor_of("vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n").make, "Intel");
}

TEST(Processor, AnArmSaysWhoMadeItInItsOwnWords) {
  const Processor arm =
      processor_of("processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd40\n");
  EXPECT_EQ(text_of(arm), "Arm family 8 model 0xd40");
  EXPECT_EQ(processor_of("CPU implementer\t: 0x77\n").make, "0x77");
  EXPECT_EQ(text_of(processor_of("")), "unknown make");
}

/// Writes index NUMBER of a core's cache folder as the kernel shows it.
void add_cache(const std::filesystem::path& folder, int number, const std::vector<std::string>& values) {
  const std::filesystem::path index = folder / ("index" + std::to_string(number));
  std::filesystem::create_directory(index);
  const std::vector<std::string> names{"level", "type", "size", "shared_cpu_list"};
  for (std::size_t i = 0; i < names.size(); ++i) std::ofstream(index / names[i]) << values[i] << '\n';
}

TEST(Processor, CachesAreReadWithWhoSharesThemAndWithoutThoseOfInstructions) {
  const test::TemporaryDirectory folder;
  add_cache(folder.path(), 3, {"3", "Unified", "32768K", "0-1"});
  add_cache(folder.path(), 1, {"1", "Instruction", "32K", "0"});
  add_cache(folder.path(), 0, {"1", "Data", "48K", "0"});
  add_cache(folder.path(), 2, {"2", "Unified", "1024K", "0"});
  Processor processor{.make = "AMD", .caches = caches_in(folder.path())};
  EXPECT_EQ(text_of(processor), "AMD: L1d 48 KiB, L2 1 MiB, L3 32 MiB of cores 0-1");
  const nlohmann::json json = to_json(processor);
  ASSERT_THAT(json["caches"], SizeIs(3));
  EXPECT_EQ(json["caches"][2]["bytes"], 32 << 20);
  EXPECT_EQ(json["caches"][2]["cores"], "0-1");
}

TEST(Processor, WhereTheKernelShowsNoCachesThereAreNone) {
  EXPECT_THAT(caches_in("/nowhere/at/all"), IsEmpty());
  EXPECT_FALSE(text_of(this_processor()).empty());
}

}  // namespace
}  // namespace wherry::bench
