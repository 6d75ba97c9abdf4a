// SPDX-License-Identifier: Apache-2.0
// Makes messages between links, and encodes bells in them.
#pragma once

#include <cstdint>
#include <optional>

#include "fabric/bell.hpp"
#include "fabric/ofi/layout/link_messages.hpp"

namespace wherry::fabric::ofi {

constexpr layout::LinkBell bell_number(std::optional<Bell> bell) {
  if (!bell) return layout::LinkBell::none;
  return *bell == Bell::data ? layout::LinkBell::data : layout::LinkBell::space;
}

/// Decodes a bell. False if the number is invalid.
constexpr bool parse_bell(std::uint64_t number, std::optional<Bell>& bell) {
  if (number > static_cast<std::uint64_t>(layout::LinkBell::none)) return false;
  bell.reset();
  if (number != static_cast<std::uint64_t>(layout::LinkBell::none)) bell = number == 0 ? Bell::data : Bell::space;
  return true;
}

constexpr layout::LinkMessage message_of(layout::LinkKind kind, std::uint32_t number, std::uint64_t a,
                                         std::uint64_t b = 0, std::uint64_t c = 0) {
  return {static_cast<std::uint32_t>(kind), number, a, b, c};
}

}  // namespace wherry::fabric::ofi
