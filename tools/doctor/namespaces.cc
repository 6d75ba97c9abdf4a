// SPDX-License-Identifier: Apache-2.0
//
// Which processes this one can reach: its namespaces, and whether they are those of a container.
#include <fmt/format.h>

#include <array>
#include <string>

#include "base/namespaces.hpp"
#include "doctor/check.hpp"
#include "fabric/shm/elsewhere.hpp"

namespace wherry::tools::doctor {
namespace {

struct Kind {
  const char* name;  // in /proc/PID/ns
  const char* word;
};

constexpr std::array kOthers{Kind{"pid", "pid"}, Kind{"user", "user"}, Kind{"ipc", "ipc"}, Kind{"mnt", "mount"}};

const char* origin(const char* kind) {
  const auto initial = is_initial_namespace(kind);
  return !initial ? "" : *initial ? " (the initial one)" : " (not the initial one)";
}

}  // namespace

Finding check_reach() {
  const std::string found = fabric::shm::place_of_search() + origin("net");
  if (is_initial_namespace("net") != false) return {Verdict::ok, found, ""};
  return {Verdict::warn, found,
          "processes in other network namespaces are not reached: share one with them (docker run --network=host or "
          "--network=container:NAME; docs/containers.md)"};
}

Finding check_namespaces() {
  std::string found;
  for (const Kind& kind : kOthers) {
    const auto number = namespace_number(kind.name);
    found += (found.empty() ? "" : ", ") + (number == 0 ? fmt::format("{} unknown", kind.word)
                                                        : fmt::format("{} {}{}", kind.word, number, origin(kind.name)));
  }
  if (is_initial_namespace("pid") != false) return {Verdict::ok, found, ""};
  return {Verdict::ok, found,
          "with processes in other pid namespaces, large messages go through the ring and files are not lent "
          "(docs/containers.md)"};
}

}  // namespace wherry::tools::doctor
