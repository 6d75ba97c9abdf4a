// SPDX-License-Identifier: Apache-2.0
#include "mpirun/settings.hpp"

#include <array>
#include <cerrno>
#include <cstdint>

#include <wherry/error.hpp>

#include "base/config.hpp"

namespace wherry::tools {
namespace {

/// The options that the provider and its mailbox read, except the layout and the budget.
constexpr std::array kOfTheProvider{config::Key::mpi_eager, config::Key::ring, config::Key::spin,
                                    config::Key::job,       config::Key::node, config::Key::connect_timeout};

}  // namespace

void check_budget(const std::string& budget) {
  const config::Option& option = config::option(config::Key::mpi_budget);
  try {
    const std::uint64_t bytes = config::parse_bytes("--budget", budget);
    if (bytes >= option.low && bytes <= option.high) return;
  } catch (const Error&) {
    // Not a number: refused below, with the same advice.
  }
  throw Error(EINVAL, "use", "--budget " + budget, "give " + std::string(option.allowed));
}

void check_variables() {
  for (const config::Key key : kOfTheProvider) config::check(key);
}

}  // namespace wherry::tools
