// SPDX-License-Identifier: Apache-2.0
#include "file/mount/attempts.hpp"

#include <ctime>
#include <utility>

namespace wherry::file::mount {
namespace {

constexpr std::uint64_t kNanoseconds = 1'000'000'000;

}  // namespace

ServedRequest& served_request() {
  static thread_local ServedRequest request;
  return request;
}

void when_answered(std::function<void()> call) {
  if (served_request().number == 0)
    call();
  else
    served_request().when_answered.push_back(std::move(call));
}

std::optional<std::uint64_t> Attempts::begin(std::uint64_t value) {
  ServedRequest& request = served_request();
  if (kept_ == nullptr || request.number == 0) return {};
  request.begun = true;
  if (const auto first = left_.find(request.number); request.repeated && first != left_.end()) return first->second;
  KeptState::Batch(kept_).add(layout::KeptWord::begun, request.number, value);
  return {};
}

std::optional<std::uint64_t> Attempts::begin_rename(std::uint64_t moved, const KeptSnapshot::Renaming& renaming) {
  if (kept_ != nullptr && served_request().number != 0)
    KeptState::Batch(kept_).add_renaming(served_request().number, renaming);
  return begin(moved);
}

void Attempts::end() {
  const ServedRequest request = std::exchange(served_request(), {});
  if (request.begun) KeptState::Batch(kept_).add(layout::KeptWord::ended, request.number);
  for (const auto& call : request.when_answered) call();
}

std::uint64_t Attempts::now() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * kNanoseconds + static_cast<std::uint64_t>(time.tv_nsec);
}

std::optional<bool> was_made_since(const layout::FileStatus& status, std::uint64_t since) {
  if (status.has_birth == 0) return {};
  return static_cast<std::uint64_t>(status.born.seconds) * kNanoseconds + status.born.nanoseconds >= since;
}

}  // namespace wherry::file::mount
