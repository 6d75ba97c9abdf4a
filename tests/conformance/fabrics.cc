// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/fabrics.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>

#include "arch/barrier.hpp"
#include "base/two_hosts.hpp"
#include "fabric/modules.hpp"
#include "tests/common/sanitizer.hpp"

namespace wherry::conformance {
namespace {

/// A key that this process and its children have, and ports that the kernel chooses for no connection by
/// itself: few, as one attempt to connect looks at all, and others than most other processes of tests.
void let_hosts_meet() {
  static const int key = ::memfd_create("wherry.key", 0);
  static const bool made = [] {
    const std::string text = "/proc/self/fd/" + std::to_string(key);
    ::fchmod(key, S_IRUSR | S_IWUSR);
    const std::string written = "wherry-key-1:" + std::string(64, '7') + "\n";
    if (::write(key, written.data(), written.size()) < 0) return false;
    constexpr int kFirst = 20000, kEach = 128, kRanges = 90;
    const int first = kFirst + ::getpid() % kRanges * kEach;
    const std::string ports = std::to_string(first) + "-" + std::to_string(first + kEach - 1);
    return ::setenv("WHERRY_KEY", text.c_str(), 1) == 0 && ::setenv("WHERRY_PORTS", ports.c_str(), 1) == 0;
  }();
  static_cast<void>(made);
}

std::optional<TwoHosts>& two_hosts() {
  static std::optional<TwoHosts> hosts;
  return hosts;
}

std::ptrdiff_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

}  // namespace

std::string move_to_near_host() {
  if (two_hosts()) return {};
  if (threads_of_this_process() != 1) return "a process that has threads cannot move to another host; run this alone";
  try {
    two_hosts().emplace();
    two_hosts()->enter(0);
  } catch (const std::runtime_error& refused) {
    two_hosts().reset();
    return refused.what();
  }
  return {};
}

void move_to_far_host() { two_hosts().value().enter(1); }

std::vector<FabricUnderTest> fabrics_under_test() {
  std::vector<FabricUnderTest> fabrics{
      {.label = "inproc", .fabric = "inproc"},
      {.label = "inproc_put", .fabric = "inproc-put", .maps = false},
      {.label = "inproc_net", .fabric = "inproc-net", .maps = false, .rounds = 2000, .vouches = false},
      {.label = "inproc_net_words", .fabric = "inproc-net-words", .maps = false, .rounds = 2000, .vouches = false},
      {.label = "shm", .fabric = "shm", .between_processes = true},
      {.label = "faulty_inproc",
       .fabric = "faulty+inproc",
       .faults = "seed=1,short=20,reorder=50,delay=20,spurious=20",
       .rounds = 2000,
       .rings_exactly = false},
      {.label = "faulty_shm",
       .fabric = "faulty+shm",
       .between_processes = true,
       .faults = "seed=5,delay=20,spurious=20,private=10",
       .rounds = 2000,
       .rings_exactly = false},
      {.label = "faulty_inproc_put",
       .fabric = "faulty+inproc-put",
       .maps = false,
       .faults = "seed=2,short=20,reorder=50,delay=20",
       .rounds = 2000},
      {.label = "faulty_inproc_net",
       .fabric = "faulty+inproc-net",
       .maps = false,
       .faults = "seed=6,short=20,reorder=50,delay=20",
       .rounds = 2000,
       .vouches = false},
      {.label = "faulty_inproc_hidden",
       .fabric = "faulty+inproc",
       .maps = false,
       .faults = "seed=3,short=20,reorder=50,hide_map=1"},
      {.label = "faulty_shm_hidden",
       .fabric = "faulty+shm",
       .maps = false,
       .between_processes = true,
       .faults = "seed=4,short=20,reorder=50,delay=20,spurious=20,hide_map=1",
       .rounds = 2000,
       .rings_exactly = false},
  };
  // Built without libfabric or libsodium; or under a sanitizer, where a libfabric that was built without one is of no
  // use to it.
  constexpr bool kUnderSanitizer = WHERRY_ADDRESS_SANITIZER != 0 || WHERRY_THREAD_SANITIZER != 0;
  if (&wherry_fabric_ofi == nullptr || kUnderSanitizer) return fabrics;
  let_hosts_meet();
  fabrics.push_back({.label = "ofi",
                     .fabric = "ofi",
                     .maps = false,
                     .rounds = 2000,
                     .vouches = false,
                     .refuses_at_once = false,
                     .reaches_all = false,
                     .descriptors = 7});
  return fabrics;
}

std::vector<FabricUnderTest> process_fabrics_under_test() {
  auto fabrics = fabrics_under_test();
  const auto ofi = std::ranges::find(fabrics, "ofi", &FabricUnderTest::label);
  if (ofi != fabrics.end()) {
    ofi->label = "ofi_hosts";
    ofi->between_processes = ofi->between_hosts = true;
  }
  std::erase_if(fabrics, [](const FabricUnderTest& tested) { return !tested.between_processes; });
  return fabrics;
}

std::vector<FabricUnderTest> mapped_fabrics_under_test() {
  auto fabrics = fabrics_under_test();
  std::erase_if(fabrics, [](const FabricUnderTest& tested) { return !tested.maps; });
  return fabrics;
}

std::vector<FabricUnderTest> network_fabrics_under_test() {
  auto fabrics = fabrics_under_test();
  std::erase_if(fabrics, [](const FabricUnderTest& tested) { return !tested.fabric.starts_with("inproc-net"); });
  return fabrics;
}

std::vector<FabricUnderTest> progressing_fabrics_under_test() {
  auto fabrics = fabrics_under_test();
  std::erase_if(fabrics, [](const FabricUnderTest& tested) {
    return tested.fabric != "ofi" && !tested.fabric.starts_with("inproc-net");
  });
  return fabrics;
}

std::ostream& operator<<(std::ostream& out, const FabricUnderTest& tested) { return out << tested.label; }

}  // namespace wherry::conformance
