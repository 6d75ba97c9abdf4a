// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <optional>

#include "bench/harness/placement.hpp"

namespace wherry::bench {

/// Looks at two cores once. Empty if that could not be done: a core was busy with something else all the time.
using Prober = std::function<std::optional<Probe>()>;

/// By two threads, one on each of the cores, that live as long as a look: 0.3 to 1 ms on an idle machine, 20 ms at
/// most. Of many short batches those are taken that nothing disturbed. The caller's process must not fork meanwhile.
Prober probe_between(std::array<int, 2> cores);

}  // namespace wherry::bench
