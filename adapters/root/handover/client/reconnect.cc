// SPDX-License-Identifier: Apache-2.0
// WindowClient: connecting, and connecting again.
#include <cerrno>
#include <cstring>
#include <thread>

#include "client_impl.hpp"

namespace wherry::root {
namespace {

constexpr StreamOptions kStreamOptions{.ring_bytes = kControlRing, .windows = true};
/// Interval between two attempts to connect.
constexpr std::chrono::milliseconds kRetry{50};

}  // namespace

void WindowClient::Impl::connect_again(const Broken& broken) {
  const auto deadline = Clock::now() + options_.reconnect;
  for (;;) {
    try {
      frames_.close();
      return resume();
    } catch (const Broken&) {
      // The server died during the greeting.
    } catch (const Error&) {
      if (failure_) throw;
      // No server listens there yet.
    }
    if (Clock::now() > deadline) {
      fail(broken.error, broken.error == ECONNREFUSED ? "no server listens there, and none started in time"
                                                      : "the server is gone, and no other started in time");
    }
    std::this_thread::sleep_for(kRetry);
  }
}

/// Greets the new server, posts again the files that the previous one did not report done, and copies the file being
/// written. If that fails, the state is as before, so that the next attempt can repeat it.
void WindowClient::Impl::resume() {
  mapped_.clear();
  const auto begun = std::exchange(begun_, std::nullopt);
  const auto lease = std::exchange(lease_, nullptr);
  try {
    for (Posted& file : posted_) file.here = false;
    greet();
    const auto files = posted_;  // the first may be done before the last is posted
    for (const Posted& file : files) {
      reserve(file.bytes);
      std::memcpy(lease_->at(*begun_), file.lease->at(file.place), file.bytes);
      const auto listed = std::find_if(posted_.begin(), posted_.end(),
                                       [&](const Posted& posted) { return posted.sequence == file.sequence; });
      hand_over(*listed, true, layout::kRootAgain);
    }
    if (!begun) return;
    const auto written = lease->free_from(*begun).first(std::min(lease->free_from(*begun).size(), max_file_));
    reserve(written.size());
    std::memcpy(lease_->at(*begun_), written.data(), written.size());
  } catch (...) {
    begun_ = begun;
    lease_ = lease;
    throw;
  }
}

void WindowClient::Impl::greet() {
  // With options_.reconnect, connect_again() waits for a server.
  const Timeout wait = options_.reconnect.count() > 0 ? Timeout(0) : options_.connect_timeout;
  frames_ = FramedStream(start_connect(address_, kStreamOptions, wait).finish(options_.connect_timeout));
  // Files are written into the server's memory. Checked now, because a worker may compute for an hour before it writes.
  if (!frames_.stream().windows().can_map()) {
    fail(ENOTSUP, "the fabric cannot map the server's memory; use one that can, such as shm");
  }
  RootRecord hello = record_of(RootKind::hello, layout::kRootVersion);
  if (options_.reconnect.count() > 0) hello.flags = layout::kRootReturns;
  std::memcpy(hello.id, id_, sizeof id_);
  send(hello);
  max_file_ = 0;
  recalled_ = false;
  listening_ = false;
  while (max_file_ == 0) receive();
}

}  // namespace wherry::root
