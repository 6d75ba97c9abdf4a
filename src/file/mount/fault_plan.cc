// SPDX-License-Identifier: Apache-2.0
#include "file/mount/fault_plan.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include <wherry/error.hpp>

#include "base/unique_fd.hpp"
#include "file/mount/fault_points.hpp"
#include "file/mount/layout/fault_plan.hpp"

namespace wherry::file::mount {
namespace {

using layout::FaultPassed;
using layout::FaultPlanHeader;

/// In the order of FaultPoint.
constexpr std::array<std::string_view, kFaultPoints> kNames{"request_taken",
                                                            "piece_written",
                                                            "call_made",
                                                            "piece_read",
                                                            "answered",
                                                            "request_sent",
                                                            "data_sent",
                                                            "answer_begun",
                                                            "connected",
                                                            "reopened",
                                                            "lent",
                                                            "delegated",
                                                            "recalled",
                                                            "write_kept",
                                                            "batch_written",
                                                            "batch_noted",
                                                            "batch_removed",
                                                            "given_back",
                                                            "forgotten",
                                                            "ring_attached",
                                                            "ring_copied",
                                                            "ring_sealed",
                                                            "ring_ended",
                                                            "replay_copied",
                                                            "replay_sending",
                                                            "replay_written",
                                                            "replay_noted",
                                                            "replay_removed",
                                                            "replay_forgotten",
                                                            "replayed",
                                                            "state_written",
                                                            "state_committed",
                                                            "state_rewritten",
                                                            "state_switched",
                                                            "handing_over",
                                                            "descriptor_kept",
                                                            "daemon_ended",
                                                            "daemon_started",
                                                            "descriptor_given"};
static_assert(!kNames.back().empty(), "each point has a name");

struct Plan {
  FaultPlanHeader header;
  std::array<FaultPassed, kFaultPoints> passed;
};

/// Mapped until the process ends.
Plan* plan = nullptr;

void at(FaultPoint point) {
  const auto number = static_cast<std::size_t>(point);
  plan->passed.at(number).times.fetch_add(1, std::memory_order_relaxed);
  if (plan->header.countdown.load() <= 0 || kNames.at(number) != plan->header.point) return;
  if (plan->header.countdown.fetch_sub(1) != 1) return;
  for (const auto& other : plan->header.others) {
    if (const pid_t process = other.load(std::memory_order_relaxed); process > 0) ::kill(process, SIGKILL);
  }
  if (plan->header.spares.load(std::memory_order_relaxed) == 0) ::kill(::getpid(), SIGKILL);
}

}  // namespace

void follow_fault_plan(const std::string& file) {
  const UniqueFd opened(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  if (!opened.valid() || ::ftruncate(opened.get(), sizeof(Plan)) != 0)
    throw Error(errno, "use the fault plan", file, "name a file that can be written");
  void* const mapped = ::mmap(nullptr, sizeof(Plan), PROT_READ | PROT_WRITE, MAP_SHARED, opened.get(), 0);
  if (mapped == MAP_FAILED) throw Error(errno, "map the fault plan", file, "");
  plan = static_cast<Plan*>(mapped);
  for (std::size_t i = 0; i < kFaultPoints; ++i)
    std::memcpy(plan->passed.at(i).point, kNames.at(i).data(), kNames.at(i).size());
  at_fault_point.store(at, std::memory_order_relaxed);
}

}  // namespace wherry::file::mount
