// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "file/cache.hpp"

namespace wherry::file {

/// This process's cache. It is attached to its card if that can be had: if `start` is set and none runs, one is started
/// where the program `wherry` is found, once. Otherwise every call of it does nothing, and the next call here looks
/// again. Never throws; blocks until the card serves.
Cache& process_cache(bool start) noexcept;

/// Before a change: a process without a cache looks whether a card has come since, each 10 ms, so that its programs
/// learn of the change.
void look_for_card() noexcept;

}  // namespace wherry::file
