// SPDX-License-Identifier: Apache-2.0
#include "sent.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <chrono>
#include <new>

#include <wherry/error.hpp>

#include "arch/pause.hpp"

namespace wherry::root {
namespace {

using layout::kRootSentBytes;
using layout::kRootSentOffset;
using layout::RootSentPage;

/// About 2 us. In most cases the sender's call returned long before.
constexpr int kSpinLooks = 100;

/// A sender that was descheduled between publishing its bytes and ringing the bell runs again within this time, even
/// among hundreds of processes.
constexpr std::chrono::seconds kSentTimeout{1};
constexpr std::chrono::microseconds kStep{200};

}  // namespace

OwnSent::OwnSent(Windows windows) {
  void* const memory = ::mmap(nullptr, kRootSentBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw Error(ENOMEM, "make a page for a socket", "", "");
  memory_ = {static_cast<std::byte*>(memory), kRootSentBytes};
  (new (memory) RootSentPage{})->version = layout::kRootSentVersion;
  try {
    windows.add(memory_, Access::read, kRootSentOffset);
  } catch (const Error&) {
    ::munmap(memory_.data(), memory_.size());
    throw;
  }
}

OwnSent::~OwnSent() { ::munmap(memory_.data(), memory_.size()); }

void OwnSent::add(std::size_t bytes) {
  sent_ += bytes;
  reinterpret_cast<RootSentPage*>(memory_.data())->sent.store(sent_, std::memory_order_release);  // SENT
}

/// Maps the peer's page. One attempt is enough, because a peer registers its page before it sends.
bool PeersSent::find(Stream& stream) {
  if (!mapped_.bytes().empty()) return true;
  if (useless_) return false;
  try {
    mapped_ = stream.windows().map(kRootSentOffset, kRootSentBytes, Access::read);
  } catch (const Error&) {
    useless_ = true;
  }
  return !useless_;
}

bool PeersSent::over(std::uint64_t received) const {
  const auto& page = *reinterpret_cast<const RootSentPage*>(mapped_.bytes().data());
  return page.sent.load(std::memory_order_acquire) >= received;  // SENT
}

void PeersSent::await(Stream& stream, std::uint64_t received) {
  if (useless_ || !find(stream)) return;
  for (int look = 0; look < kSpinLooks; ++look) {
    if (over(received)) return;
    arch::pause();
  }
  const auto end = std::chrono::steady_clock::now() + kSentTimeout;
  while (!over(received)) {
    // More bytes, or the end of the stream, end the wait.
    const Result more = stream.wait_readable(kStep);
    if (!more.failed() || more.error != ETIMEDOUT) return;
    if (std::chrono::steady_clock::now() >= end) {
      useless_ = true;
      return;
    }
  }
}

}  // namespace wherry::root
