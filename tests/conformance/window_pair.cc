// SPDX-License-Identifier: Apache-2.0
#include <system_error>

#include "tests/conformance/window_pair.hpp"

namespace wherry::conformance {

std::uint64_t registered(Space& space, std::span<std::byte> memory, int protection,
                         std::optional<std::uint64_t> offset) {
  const auto result = space.register_memory(memory, offset, protection);
  if (result.error != 0) throw std::system_error(result.error, std::system_category(), "register");
  return result.offset;
}

}  // namespace wherry::conformance
