// SPDX-License-Identifier: Apache-2.0
#include "tests/stress/watchdog.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace wherry::stress {
namespace {

constexpr std::chrono::seconds kTimeout{60};

const char* name_of(Doing doing) {
  constexpr std::array kNames{
      "nothing yet", "send",   "try_send", "poll on a descriptor", "wait_*", "reserve or peek", "receive",
      "try_receive", "dozing", "done"};
  return kNames.at(static_cast<std::size_t>(doing));
}

}  // namespace

Watchdog::Watchdog(std::vector<Watched> sides, std::function<void()> last_words)
    : sides_(std::move(sides)), last_words_(std::move(last_words)), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stop_.notify_one();
  thread_.join();
}

std::uint64_t Watchdog::total() const {
  std::uint64_t sum = 0;
  for (const Watched& side : sides_) sum += side.progress->operations.load(std::memory_order_relaxed);
  return sum;
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  for (std::uint64_t before = ~std::uint64_t{0};;) {
    if (stop_.wait_for(lock, kTimeout, [this] { return stopped_; })) return;
    const std::uint64_t now = total();
    if (now == before) {
      dump();
      last_words_();
      std::abort();
    }
    before = now;
  }
}

void Watchdog::dump() const {
  std::fprintf(stderr, "nothing has moved for %lld s:\n", static_cast<long long>(kTimeout.count()));
  for (const Watched& side : sides_) {
    const Progress& at = *side.progress;
    std::fprintf(stderr, "  %s: in %s after %llu operations, %llu bytes, %llu sleeps\n", side.name.c_str(),
                 name_of(at.doing), static_cast<unsigned long long>(at.operations),
                 static_cast<unsigned long long>(at.bytes), static_cast<unsigned long long>(at.sleeps));
  }
}

}  // namespace wherry::stress
