// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/fault.hpp"

#include <algorithm>
#include <thread>

namespace wherry::fault {

void FaultTest::reset_scene() {
  scene_->accepted_bytes = 0;
  scene_->ready = false;
  scene_->killed_at = 0;
}

Child FaultTest::killer_of(const Child& victim, std::chrono::microseconds delay) {
  return Child([this, pid = victim.pid(), delay] {
    while (!scene_->ready) std::this_thread::sleep_for(50us);
    std::this_thread::sleep_for(delay);
    scene_->killed_at = steady_ns();
    return ::kill(pid, SIGKILL) == 0;
  });
}

void FaultTest::kill_now(const Child& victim) {
  scene_->killed_at = steady_ns();
  victim.kill();
}

void FaultTest::noticed() { noticed_ms_.push_back(static_cast<double>(steady_ns() - scene_->killed_at) / 1e6); }

void FaultTest::TearDown() {
  if (noticed_ms_.empty()) return;
  std::sort(noticed_ms_.begin(), noticed_ms_.end());
  std::printf("noticed after a median of %.2f ms, at most %.2f ms (%zu deaths)\n", noticed_ms_[noticed_ms_.size() / 2],
              noticed_ms_.back(), noticed_ms_.size());
}

Result receive_to_the_last(Stream& stream, const Pattern& pattern, std::uint64_t& received) {
  std::vector<std::byte> buffer(10'000);
  while (true) {
    const Result result = stream.receive(buffer, kTimeout);
    if (!result.ok()) return result;
    EXPECT_TRUE(pattern.matches(std::span(buffer).first(result.bytes), received)) << "at " << received;
    received += result.bytes;
  }
}

}  // namespace wherry::fault
