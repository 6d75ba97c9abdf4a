// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/fabrics.hpp"

#include <ostream>

namespace wherry::conformance {

std::vector<FabricUnderTest> fabrics_under_test() {
  return {
      {.label = "inproc", .fabric = "inproc"},
      {.label = "inproc_put", .fabric = "inproc-put", .maps = false},
      {.label = "shm", .fabric = "shm", .between_processes = true},
  };
}

std::vector<FabricUnderTest> process_fabrics_under_test() {
  auto fabrics = fabrics_under_test();
  std::erase_if(fabrics, [](const FabricUnderTest& tested) { return !tested.between_processes; });
  return fabrics;
}

std::ostream& operator<<(std::ostream& out, const FabricUnderTest& tested) { return out << tested.label; }

}  // namespace wherry::conformance
