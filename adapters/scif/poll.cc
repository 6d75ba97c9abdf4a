// SPDX-License-Identifier: Apache-2.0
// scif_poll: looks at the queues themselves, and sleeps in poll(2) on the same descriptors.
#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "adapters/scif/calls.hpp"
#include "fabric/event_bell.hpp"

using namespace wherry;
using namespace wherry::scif;

static_assert(sizeof(scif_pollepd) == sizeof(pollfd) && offsetof(scif_pollepd, epd) == offsetof(pollfd, fd) &&
              offsetof(scif_pollepd, events) == offsetof(pollfd, events) &&
              offsetof(scif_pollepd, revents) == offsetof(pollfd, revents));

namespace {

/// A number that no descriptor has: poll(2) answers POLLNVAL.
constexpr int kNothing = std::numeric_limits<int>::max();

constexpr std::size_t kMostSpun = 8;  ///< entries that are looked at before sleeping

class Polling {
 public:
  explicit Polling(std::span<scif_pollepd> entries);
  /// Number of entries with events, 0 after the deadline, or an errno value negated.
  int run(fabric::Deadline deadline);

 private:
  int look(bool kernel_asked);
  int ask_kernel(fabric::Deadline deadline);
  void forget_closed();
  [[nodiscard]] bool may_spin() const;
  bool spin(fabric::Deadline deadline);

  std::span<scif_pollepd> entries_;
  std::vector<Use> uses_;
  std::vector<pollfd> polled_;  ///< one for each entry, and one that a close in another thread makes readable
  std::vector<Sleepers::Here> here_;
  bool queues_ = false;  ///< some entry has one
};

Polling::Polling(std::span<scif_pollepd> entries) : entries_(entries) {
  uses_.reserve(entries.size());
  for (const scif_pollepd& entry : entries) {
    Use endpoint = find(entry.epd);
    // What is no endpoint is asked for as poll(2) does.
    if (endpoint && !endpoint->is_current()) endpoint = Use();
    if (endpoint && endpoint->link() != nullptr) queues_ = true;
    if (endpoint) here_.emplace_back(endpoint->line().sleepers());
    polled_.push_back({entry.epd, entry.events, 0});
    uses_.push_back(std::move(endpoint));
  }
  polled_.push_back({here_.empty() ? -1 : here_.front().descriptor(), POLLIN, 0});
}

/// Another thread closes them and waits until they are not used: the kernel is asked what their numbers are.
void Polling::forget_closed() {
  const auto is_closing = [](const Use& endpoint) { return endpoint && endpoint->line().sleepers().woken(); };
  if (std::none_of(uses_.begin(), uses_.end(), is_closing)) return;
  here_.clear();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (is_closing(uses_[i])) {
      uses_[i] = Use();
      polled_[i].fd = kNothing;
    } else if (uses_[i]) {
      here_.emplace_back(uses_[i]->line().sleepers());
    }
  }
  polled_.back().fd = here_.empty() ? -1 : here_.front().descriptor();
}

int Polling::look(bool kernel_asked) {
  int ready = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    scif_pollepd& entry = entries_[i];
    const short kernel = kernel_asked ? polled_[i].revents : short{0};
    entry.revents = uses_[i] ? uses_[i]->events(entry.events, kernel) : kernel;
    if (entry.revents != 0) ++ready;
  }
  return ready;
}

int Polling::ask_kernel(fabric::Deadline deadline) {
  forget_closed();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!uses_[i]) continue;
    polled_[i].events = uses_[i]->kernel_events(entries_[i].events);
    Link* link = uses_[i]->link();
    if (link == nullptr) continue;
    link->inlet.settle();
    link->outlet.settle();
  }
  timespec storage{};
  const int ready = ::ppoll(polled_.data(), polled_.size(), fabric::time_left(deadline, storage), nullptr);
  if (ready < 0) return -errno;
  forget_closed();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (uses_[i] && (polled_[i].revents & (POLLHUP | POLLERR)) != 0 && uses_[i]->link() != nullptr) {
      uses_[i]->line().declare_gone();
    }
  }
  return ready;
}

/// Looking pays where bytes are all that is waited for: another event would be found late.
bool Polling::may_spin() const {
  if (entries_.size() > kMostSpun) return false;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!uses_[i] || uses_[i]->link() == nullptr || (entries_[i].events & POLLIN) == 0) return false;
    if ((entries_[i].events & (POLLOUT | POLLWRNORM)) != 0) return false;
  }
  return true;
}

bool Polling::spin(fabric::Deadline deadline) {
  thread_local stream::SpinBudget budget;
  const auto something_came = [this] {
    return std::any_of(uses_.begin(), uses_.end(), [](const Use& endpoint) {
      return endpoint->link()->inlet.stirs() || endpoint->line().sleepers().woken();
    });
  };
  return budget.look(something_came, deadline);
}

int Polling::run(fabric::Deadline deadline) {
  if (queues_) {
    if (const int ready = look(false); ready != 0) return ready;
    const bool waits = !deadline || std::chrono::steady_clock::now() < *deadline;
    if (waits && may_spin() && spin(deadline)) {
      if (const int ready = look(false); ready != 0) return ready;
    }
  }
  while (true) {
    const int error = ask_kernel(deadline);
    if (error < 0) return error;
    if (const int ready = look(true); ready != 0) return ready;
    if (deadline && std::chrono::steady_clock::now() >= *deadline) return 0;
  }
}

}  // namespace

int scif_poll(struct scif_pollepd* epds, unsigned int nepds, long timeout_ms) {
  return guarded([&] {
    if (epds == nullptr && nepds != 0) return -EFAULT;
    fabric::Deadline deadline;
    if (timeout_ms >= 0) deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    return Polling({epds, nepds}).run(deadline);
  });
}
