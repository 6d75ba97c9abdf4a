// SPDX-License-Identifier: Apache-2.0
// The part of Space that registers windows and closes.
#include <cerrno>

#include "base/clock.hpp"
#include "window/space.hpp"

namespace wherry::window {

Space::Registered Space::register_memory(std::span<std::byte> memory, std::optional<std::uint64_t> offset,
                                         int protection, Clock::duration timeout, const GiveUp& give_up) {
  const auto deadline = time_after(timeout);
  for (Backoff backoff;; backoff.pause()) {
    if (peer_left()) return {.error = ECONNRESET};
    if (origin_.inherited()) return {.error = ENOTSUP};
    Registered registered;
    registered.error = local_.add(memory, offset, protection, registered.offset);
    if (registered.error != EBUSY || Clock::now() >= deadline) return registered;
    if (give_up && give_up()) return {.error = ECANCELED};
  }
}

int Space::unregister(std::uint64_t offset, std::size_t bytes) {
  if (closed_) return ECONNRESET;
  return origin_.inherited() ? ENOTSUP : local_.remove(offset, bytes);
}

Space::~Space() { close(); }

void Space::close() { (void)close(time_after(fabric::kCloseTimeout)); }

Result Space::close(const fabric::Deadline& deadline) noexcept {
  if (closed_.exchange(true)) return Result::failure(EBADF);
  references_->close();
  if (origin_.inherited()) return Result::failure(EBADF);
  local_.close();
  if (announces_end_) peers_.store_closed();  // WINDOW-TABLE
  const Result flushed = connection_.flush(deadline);
  local_.remove_all();
  if (flushed.error != ETIMEDOUT) late_.drop();
  return flushed;
}

}  // namespace wherry::window
