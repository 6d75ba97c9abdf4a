// SPDX-License-Identifier: Apache-2.0
// scif_poll: polls the queues in memory, then sleeps in poll(2) on the same descriptors.
#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <vector>

#include "adapters/scif/calls.hpp"
#include "adapters/scif/seen_pages.hpp"
#include "fabric/event_bell.hpp"

using namespace wherry;
using namespace wherry::scif;

static_assert(sizeof(scif_pollepd) == sizeof(pollfd) && offsetof(scif_pollepd, epd) == offsetof(pollfd, fd) &&
              offsetof(scif_pollepd, events) == offsetof(pollfd, events) &&
              offsetof(scif_pollepd, revents) == offsetof(pollfd, revents));

namespace {

/// A number that no descriptor has: poll(2) answers POLLNVAL.
constexpr int kNothing = std::numeric_limits<int>::max();

constexpr std::size_t kMostSpun = 64;  ///< most entries that are polled before sleeping
constexpr std::size_t kFew = 4;        ///< most entries that need no memory from the heap
constexpr std::size_t kEntriesPerMoment = 8;
constexpr short kIn = POLLIN | POLLRDNORM;
constexpr short kOut = POLLOUT | POLLWRNORM;

struct Entry {
  scif_pollepd* asked = nullptr;
  Use endpoint;             ///< empty: the kernel's events are reported
  Link* link = nullptr;     ///< of a connected endpoint
  bool suppressed = false;  ///< restore_packets() must follow
  bool closed = false;      ///< another thread has closed it meanwhile
};

class Polling {
 public:
  explicit Polling(std::span<scif_pollepd> asked);
  /// Returns the number of entries with events, 0 after the deadline, or a negative errno value.
  int run(fabric::Deadline deadline);

 private:
  int look(bool kernel_asked);
  bool all_alive();
  bool spin(fabric::Deadline deadline);
  [[nodiscard]] bool may_spin() const;
  void prepare_sleep();
  int sleep(fabric::Deadline deadline);
  void forget_closing();

  std::array<Entry, kFew> few_;
  std::vector<Entry> many_;
  std::span<Entry> entries_;
  std::vector<pollfd> polled_;  ///< one for each entry, and one that a close in another thread makes readable
};

Polling::Polling(std::span<scif_pollepd> asked) {
  if (asked.size() > kFew) many_.resize(asked.size());
  entries_ = asked.size() > kFew ? std::span(many_) : std::span(few_).first(asked.size());
  for (const scif_pollepd& each : asked) {
    if (has_duplicates() || entry_of(each.epd) == nullptr) static_cast<void>(find_by_socket(each.epd));
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    Entry& entry = entries_[i];
    entry.asked = &asked[i];
    entry.endpoint = find(asked[i].epd);
    if (entry.endpoint) entry.link = entry.endpoint->link(asked[i].epd);
  }
}

int Polling::look(bool kernel_asked) {
  int ready = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    const short kernel = kernel_asked ? polled_[i].revents : short{0};
    const short events = entry.endpoint ? entry.endpoint->events(entry.asked->events, kernel) : kernel;
    entry.asked->revents = events;
    if (events != 0) ++ready;
  }
  return ready;
}

/// Whether all entries are connected and their peers alive. Makes one system call for all of them, and the more
/// entries, the less often.
bool Polling::all_alive() {
  const auto is_alive = [](const Entry& entry) { return entry.link != nullptr && !entry.endpoint->waiter().gone(); };
  if (!std::all_of(entries_.begin(), entries_.end(), is_alive)) return false;
  const std::size_t moments = 1 + entries_.size() / kEntriesPerMoment;
  const auto is_due = [&](const Entry& entry) { return entry.endpoint->waiter().is_due(moments); };
  if (std::none_of(entries_.begin(), entries_.end(), is_due)) return true;
  polled_.assign(entries_.size(), {});
  for (std::size_t i = 0; i < entries_.size(); ++i) polled_[i].fd = entries_[i].asked->epd;
  if (::poll(polled_.data(), polled_.size(), 0) < 0) return false;  // sleep() reports the error
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].endpoint->waiter().note_events(entries_[i].asked->epd, polled_[i].revents);
  }
  const auto has_not_ended = [](const pollfd& entry) { return (entry.revents & (POLLNVAL | POLLHUP | POLLERR)) == 0; };
  return std::all_of(polled_.begin(), polled_.end(), has_not_ended) &&
         std::all_of(entries_.begin(), entries_.end(), is_alive);
}

/// Spinning pays only if all entries wait for bytes: other events would be found late.
bool Polling::may_spin() const {
  return entries_.size() <= kMostSpun && std::all_of(entries_.begin(), entries_.end(), [](const Entry& entry) {
           return (entry.asked->events & kIn) != 0 && (entry.asked->events & kOut) == 0;
         });
}

bool Polling::spin(fabric::Deadline deadline) {
  thread_local stream::SpinBudget budget;
  for (Entry& entry : entries_) entry.suppressed = entry.link->receive_queue.suppress_packets();
  const auto something_came = [this] {
    return std::any_of(entries_.begin(), entries_.end(), [](Entry& entry) {
      return entry.link->receive_queue.may_have_data() || entry.endpoint->waiter().sleepers().woken();
    });
  };
  const bool came = scif::look(budget, something_came, deadline);
  for (Entry& entry : entries_) {
    if (std::exchange(entry.suppressed, false) && !entry.link->receive_queue.may_have_data())
      entry.link->receive_queue.restore_packets();
  }
  return came;
}

/// Drops endpoints that another thread is closing: it waits until they are unused. The next poll(2) then gets a number
/// that no descriptor has.
void Polling::forget_closing() {
  for (Entry& entry : entries_) {
    if (!entry.endpoint || !entry.endpoint->waiter().sleepers().woken()) continue;
    entry.endpoint = Use();
    entry.link = nullptr;
    entry.closed = true;
  }
}

/// Prepares what to ask the kernel. From here on packets announce bytes and space.
void Polling::prepare_sleep() {
  polled_.assign(entries_.size() + 1, {});
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    polled_[i] = {entry.closed ? kNothing : entry.asked->epd, entry.asked->events, 0};
    entry.link = entry.endpoint ? entry.endpoint->link(entry.asked->epd) : nullptr;
    if (entry.endpoint) polled_[i].events = entry.endpoint->kernel_events(entry.asked->events);
    if (entry.link == nullptr) continue;
    entry.link->receive_queue.fall_asleep(entry.asked->epd);
    entry.link->send_queue.prepare_poll(entry.asked->epd);
  }
}

int Polling::sleep(fabric::Deadline deadline) {
  std::vector<Sleepers::Here> here;
  here.reserve(entries_.size());
  for (Entry& entry : entries_) {
    // The program may have closed the descriptor with close(2).
    if (entry.endpoint && !entry.endpoint->waiter().is(entry.asked->epd)) entry.endpoint = Use();
    if (entry.endpoint) here.emplace_back(entry.endpoint->waiter().sleepers());
  }
  prepare_sleep();
  bool sleeps = true;
  for (const Entry& entry : entries_) {
    if (!entry.endpoint) continue;
    if (entry.endpoint->waiter().sleepers().woken()) sleeps = false;
    // There may be bytes without a packet.
    if (entry.link != nullptr && (entry.asked->events & kIn) != 0 && entry.link->receive_queue.may_have_data())
      sleeps = false;
  }
  polled_.back() = {here.empty() ? -1 : here.front().descriptor(), POLLIN, 0};
  timespec storage{};
  if (!sleeps) deadline = std::chrono::steady_clock::time_point();
  const int ready = ::ppoll(polled_.data(), polled_.size(), fabric::time_left(deadline, storage), nullptr);
  const int error = ready < 0 ? -errno : 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].link == nullptr) continue;
    entries_[i].link->receive_queue.wake_up();
    if (error == 0) entries_[i].endpoint->waiter().note_events(entries_[i].asked->epd, polled_[i].revents);
  }
  return error;
}

int Polling::run(fabric::Deadline deadline) {
  if (all_alive()) {
    if (const int ready = look(false); ready != 0) return ready;
    const bool waits = !deadline || std::chrono::steady_clock::now() < *deadline;
    if (waits && may_spin() && spin(deadline)) {
      if (const int ready = look(false); ready != 0) return ready;
    }
  }
  while (true) {
    const int error = sleep(deadline);
    if (error < 0) return error;
    forget_closing();
    if (const int ready = look(true); ready != 0) return ready;
    if (deadline && std::chrono::steady_clock::now() >= *deadline) return 0;
  }
}

}  // namespace

int scif_poll(struct scif_pollepd* epds, unsigned int nepds, long timeout_ms) {
  return guarded([&] {
    thread_local SeenPages pages(memory::Access::write);
    if (!pages.are_there(std::as_bytes(std::span(epds, nepds)))) return -EFAULT;
    fabric::Deadline deadline;
    if (timeout_ms == 0) deadline = std::chrono::steady_clock::time_point();
    if (timeout_ms > 0) deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    return Polling({epds, nepds}).run(deadline);
  });
}
