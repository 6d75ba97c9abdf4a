// SPDX-License-Identifier: Apache-2.0
// The list of fabrics that the conformance suites run on. A new fabric is one line in fabrics.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::conformance {

struct FabricUnderTest {
  std::string_view label;   ///< part of the test's name
  std::string_view fabric;  ///< as fabric::find takes it
  bool maps = true;         ///< map() is declared to be non-null
  bool between_processes = false;
  bool between_hosts = false;     ///< the two processes are on two hosts, which share no kernel's memory
  std::string_view faults = "";   ///< WHERRY_FAULTS while the test runs
  std::uint64_t rounds = 20'000;  ///< of games; fewer where faults take their time
  bool vouches = true;            ///< peers have credentials
  bool refuses_at_once = true;    ///< connect() knows whether there is a listener; otherwise try_finish() tells
  bool rings_exactly = true;      ///< no spurious or delayed wake-ups
  bool reaches_all = true;        ///< also exposed memory that cannot be moved, such as mappings of files
  std::size_t descriptors = 4;    ///< that an end takes at most
};

std::vector<FabricUnderTest> fabrics_under_test();
/// Those that join processes, also of two hosts.
std::vector<FabricUnderTest> process_fabrics_under_test();
std::vector<FabricUnderTest> mapped_fabrics_under_test();
/// Those that behave as a network, in this process.
std::vector<FabricUnderTest> network_fabrics_under_test();
/// Those whose waiters make progress themselves (Connection::progresses).
std::vector<FabricUnderTest> progressing_fabrics_under_test();
/// For a fabric between hosts: moves this process to the first of two. Returns why it cannot; empty if it is there.
std::string move_to_near_host();
/// Moves a child of that process to the second.
void move_to_far_host();
std::ostream& operator<<(std::ostream& out, const FabricUnderTest& tested);

}  // namespace wherry::conformance

/// Runs every test of `Suite` (a TEST_P suite of FabricTest) on every fabric.
#define WHERRY_ON_EVERY_FABRIC(Suite) WHERRY_ON_FABRICS(Suite, fabrics_under_test())
/// On those that join processes.
#define WHERRY_ON_PROCESS_FABRICS(Suite) WHERRY_ON_FABRICS(Suite, process_fabrics_under_test())

/// On those where each side maps the other's memory.
#define WHERRY_ON_MAPPED_FABRICS(Suite) WHERRY_ON_FABRICS(Suite, mapped_fabrics_under_test())

#define WHERRY_ON_FABRICS(Suite, list)                                                \
  INSTANTIATE_TEST_SUITE_P(, Suite, ::testing::ValuesIn(::wherry::conformance::list), \
                           [](const auto& test) { return std::string(test.param.label); })
