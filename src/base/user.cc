// SPDX-License-Identifier: Apache-2.0
#include "base/user.hpp"

#include <cstdint>
#include <fstream>

#include "base/found_once.hpp"

namespace wherry {
namespace {

constexpr uid_t kUsualOverflowUid = 65534;

/// Count of all user ids: all numbers but -1, which is no user.
constexpr std::uint64_t kAllUsers = UINT32_MAX;

uid_t overflow_uid() {
  static constinit FoundOnce<uid_t> uid;
  return uid.get([] {
    std::ifstream file("/proc/sys/kernel/overflowuid");
    uid_t read = kUsualOverflowUid;
    return file >> read ? read : kUsualOverflowUid;
  });
}

/// False also if /proc cannot be read. Not cached: a process may enter another namespace.
bool everybody_has_a_number() {
  std::ifstream map("/proc/self/uid_map");
  std::uint64_t inside = 0, outside = 0, count = 0, all = 0;
  while (map >> inside >> outside >> count) all += count;
  return all >= kAllUsers;
}

}  // namespace

bool names_one_user(uid_t uid) { return uid != overflow_uid() || everybody_has_a_number(); }

}  // namespace wherry
