// SPDX-License-Identifier: Apache-2.0
#include "fabric/faulty/plan.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include <wherry/error.hpp>

namespace wherry::fabric::faulty {
namespace {

struct Row {
  std::string_view name;
  std::uint64_t FaultPlan::* field;
  std::uint64_t most;
};

constexpr std::uint64_t kPercent = 100;
constexpr std::uint64_t kLongestDelay = 1'000'000;

constexpr std::array kRows{
    Row{"seed", &FaultPlan::seed, UINT64_MAX},      Row{"refuse", &FaultPlan::refuse, kPercent},
    Row{"short", &FaultPlan::shorten, kPercent},    Row{"reorder", &FaultPlan::reorder, kPercent},
    Row{"delay", &FaultPlan::delay, kLongestDelay}, Row{"spurious", &FaultPlan::spurious, kPercent},
    Row{"die", &FaultPlan::die, UINT64_MAX},        Row{"hide_map", &FaultPlan::hide_map, 1},
    Row{"private", &FaultPlan::deny, kPercent},     Row{"unacknowledged", &FaultPlan::unacknowledged, 1},
    Row{"hide_peer", &FaultPlan::hide_peer, 1},
};

[[noreturn]] void refuse(std::string_view text) {
  std::string advice = "write NAME=NUMBER separated by commas:";
  for (const Row& row : kRows) {
    advice += " " + std::string(row.name);
    if (row.most != UINT64_MAX) advice += " (at most " + std::to_string(row.most) + ")";
  }
  throw Error(EINVAL, "read fault plan", "\"" + std::string(text) + "\"", std::move(advice));
}

void read_item(FaultPlan& plan, std::string_view text, std::string_view item) {
  const std::size_t equals = item.find('=');
  if (equals == std::string_view::npos) refuse(text);
  const auto row = std::find_if(kRows.begin(), kRows.end(), [name = item.substr(0, equals)](const Row& candidate) {
    return candidate.name == name;
  });
  const std::string_view number = item.substr(equals + 1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  const bool whole = error == std::errc{} && end == number.data() + number.size();
  if (row == kRows.end() || !whole || value > row->most) refuse(text);
  plan.*(row->field) = value;
}

}  // namespace

FaultPlan FaultPlan::parse(std::string_view text) {
  FaultPlan plan;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    read_item(plan, text, rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return plan;
}

}  // namespace wherry::fabric::faulty
