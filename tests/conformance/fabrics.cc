// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/fabrics.hpp"

#include <ostream>

namespace wherry::conformance {

std::vector<FabricUnderTest> fabrics_under_test() {
  return {
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
}

std::vector<FabricUnderTest> process_fabrics_under_test() {
  auto fabrics = fabrics_under_test();
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

std::ostream& operator<<(std::ostream& out, const FabricUnderTest& tested) { return out << tested.label; }

}  // namespace wherry::conformance
