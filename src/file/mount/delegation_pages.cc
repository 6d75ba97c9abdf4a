// SPDX-License-Identifier: Apache-2.0
#include "file/mount/delegation_pages.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "file/mount/offered_memory.hpp"

namespace wherry::file::mount {
namespace {

constinit std::atomic<std::size_t> pages_of_all{0};

std::int64_t nanoseconds(DelegationPages::Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace

/// What the program writes to the page is not used after it was attached.
class DelegationPages::Page {
 public:
  Page(OfferedMemory memory, pid_t process, std::int64_t ahead)
      : memory_(std::move(memory)), process_(process), ahead_(ahead) {
    pages_of_all.fetch_add(1, std::memory_order_relaxed);
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  ~Page() {
    recall();
    pages_of_all.fetch_sub(1, std::memory_order_relaxed);
  }

  [[nodiscard]] pid_t process() const { return process_; }
  void grant(Clock::time_point until) {
    const std::int64_t theirs = nanoseconds(until) + ahead_;
    // DELEGATED release: the recalls before
    page().until.store(theirs > 0 ? static_cast<std::uint64_t>(theirs) : 0, std::memory_order_release);
  }
  void recall() {
    page().until.store(0, std::memory_order_relaxed);
    page().recalls.fetch_add(1, std::memory_order_seq_cst);  // DELEGATED barrier: before the file is given back
  }

 private:
  [[nodiscard]] layout::DelegationPage& page() const { return *static_cast<layout::DelegationPage*>(memory_.begin()); }

  OfferedMemory memory_;
  pid_t process_;
  std::int64_t ahead_;  // of the program's clock, in ns; rather less
};

DelegationPages::DelegationPages() = default;
DelegationPages::~DelegationPages() = default;

int DelegationPages::attach(pid_t thread, const layout::DelegationPageOffer& offer) {
  const std::int64_t now = nanoseconds(Clock::now());
  if (offer.version != layout::kDelegationPageVersion || offer.now > INT64_MAX / 2) return EINVAL;
  const pid_t process = process_of(thread);
  UniqueFd memory = take_memory(process, offer.descriptor);
  if (!memory.valid()) return EPERM;
  OfferedMemory mapped(std::move(memory), layout::kDelegationPageBytes);
  if (mapped.begin() == nullptr) return EINVAL;
  const auto& page = *static_cast<const layout::DelegationPage*>(mapped.begin());
  const bool is_one = page.version == layout::kDelegationPageVersion && page.magic == layout::kDelegationPageMagic &&
                      std::memcmp(page.random, offer.random, sizeof offer.random) == 0;
  if (!is_one) return EINVAL;
  mapped.close_descriptor();
  const std::lock_guard lock(mutex_);
  make_room(process);
  if (pages_.size() >= kMost || pages_of_all.load(std::memory_order_relaxed) >= kMostOfAll) return EMFILE;
  pages_.push_back(std::make_unique<Page>(std::move(mapped), process, static_cast<std::int64_t>(offer.now) - now));
  return 0;
}

void DelegationPages::make_room(pid_t process) {
  const auto is_of_process = [process](const auto& page) { return page->process() == process; };
  if (std::ranges::count_if(pages_, is_of_process) >= kMostOfProcess)
    pages_.erase(std::ranges::find_if(pages_, is_of_process));
}

std::optional<std::uint64_t> DelegationPages::recalls() const {
  const std::lock_guard lock(mutex_);
  return pages_.empty() ? std::nullopt : std::optional(recalls_);
}

void DelegationPages::grant(std::uint64_t recalls, Clock::time_point until) {
  const std::lock_guard lock(mutex_);
  if (recalls != recalls_) return;
  for (const auto& page : pages_) page->grant(until);
}

void DelegationPages::recall() {
  const std::lock_guard lock(mutex_);
  ++recalls_;
  for (const auto& page : pages_) page->recall();
}

}  // namespace wherry::file::mount
