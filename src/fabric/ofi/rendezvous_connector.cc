// SPDX-License-Identifier: Apache-2.0
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <list>
#include <utility>

#include <wherry/address.hpp>
#include <wherry/error.hpp>

#include "base/readable.hpp"
#include "base/retry_schedule.hpp"
#include "fabric/ofi/lookup.hpp"
#include "fabric/ofi/ports.hpp"
#include "fabric/ofi/rendezvous.hpp"
#include "fabric/ofi/search.hpp"

namespace wherry::fabric::ofi {
namespace {

using Clock = Timer::Clock;

constexpr std::uint64_t kSearchTimerId = 0;
constexpr std::uint64_t kLookupId = UINT64_MAX;
/// If an address does not answer within this time, the next one is tried in parallel (RFC 8305).
constexpr auto kHeadStart = std::chrono::milliseconds(250);
/// After this time a pass ends although an address has not answered, if another has: the listener may now be there.
constexpr auto kPassTime = std::chrono::seconds(1);
constexpr std::size_t kMostAddresses = 16;

/// Whether the failure at one address of a host tells more than that at another. If a port refuses, the host was
/// reached; then the failure of another route to it tells nothing.
bool tells_more(const Failure& one, const Failure& other) {
  using enum Failure::Gravity;
  const auto is_off = [](const Failure& each) { return each.gravity == unreachable || each.gravity == no_answer; };
  if (one.gravity == nobody_listens && is_off(other)) return true;
  if (other.gravity == nobody_listens && is_off(one)) return false;
  return one.gravity > other.gravity;
}

}  // namespace

class RendezvousConnector::State {
 public:
  State(const Settings& settings, const std::string& host, std::uint16_t node, std::uint16_t port, Introduction own,
        const Deadline& until)
      : wanted_{.settings = settings,
                .job = job_number(settings.job),
                .node = node,
                .port = port,
                .order = PortOrder(settings.ports, job_number(settings.job), node, port),
                .own = std::move(own)},
        name_(Address{.fabric = "ofi", .node = node, .port = port}.to_string() + " on " + host),
        until_(until),
        poller_(make_poller()),
        lookup_(std::in_place, host) {
    if (!poll_for(poller_.get(), timer_.descriptor(), EPOLLIN, kSearchTimerId) ||
        !poll_for(poller_.get(), lookup_->descriptor(), EPOLLIN, kLookupId)) {
      throw Error(errno, "connect", name_, "raise fs.epoll.max_user_watches");
    }
    take_addresses();
    set_timer();
  }

  std::optional<Meeting> advance() {
    if (failure_) throw Error(*failure_);
    try {
      return try_meet();
    } catch (const Error& error) {
      failure_ = error;
      searches_.clear();
      throw;
    }
  }

  [[noreturn]] void give_up() const { throw error_of(obstacle()); }

  /// Returns the gravest failure known, of those that are over and those that would be if their time were over.
  [[nodiscard]] Failure obstacle() const {
    if (lookup_) {
      return {.gravity = Failure::Gravity::no_answer,
              .error = ETIMEDOUT,
              .advice = "the resolver does not answer; correct /etc/resolv.conf, or name the host in /etc/hosts"};
    }
    Failure told;
    for (const Search& each : searches_) {
      const Failure pending = each.pending();
      const Failure& gravest = pending.gravity > each.failure().gravity ? pending : each.failure();
      if (tells_more(gravest, told)) told = gravest;
    }
    return told;
  }

  [[nodiscard]] int descriptor() const { return poller_.get(); }
  [[nodiscard]] std::size_t answers() const {
    std::size_t sum = lookup_ ? 0 : 1;
    for (const Search& each : searches_) sum += each.answers();
    return sum;
  }
  [[nodiscard]] bool is_answered() const {
    return is_done_ || std::ranges::any_of(searches_, [](const Search& each) { return each.is_answered(); });
  }

 private:
  std::optional<Meeting> try_meet() {
    if (is_done_) return std::nullopt;
    const auto now = Clock::now();
    if (lookup_ && !take_addresses()) {
      if (until_ && now >= *until_) give_up();
      return std::nullopt;
    }
    hear();
    for (Search& each : searches_) {
      if (each.limit() <= now) each.advance(now);
    }
    for (Search& each : searches_) {
      if (each.state() == Search::State::met) return take(each);
    }
    throw_if_final();
    if (is_answered()) {
      keep_answered();
    } else {
      go_on(now);
    }
    if (until_ && now >= *until_) give_up();
    set_timer();
    return std::nullopt;
  }

  /// Begins to search at the addresses of the host. False while they are being looked up.
  bool take_addresses() {
    const auto found = lookup_->result();
    if (!found) return false;
    lookup_.reset();
    std::uint64_t id = kSearchTimerId;
    for (const SocketAddress& address : *found) {
      if (id == kMostAddresses) break;
      searches_.emplace_back(wanted_, address, poller_.get(), ++id);
    }
    begin_pass();
    return true;
  }

  void hear() {
    std::array<epoll_event, kMostAddresses + 1> events{};
    const int count = ::epoll_wait(poller_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
      if (id == kSearchTimerId || id == kLookupId) continue;
      // Data that has arrived counts, even if it is handled late: so no limit has passed for this call.
      std::next(searches_.begin(), static_cast<std::ptrdiff_t>(id - 1))->advance(Clock::time_point::min());
    }
  }

  Meeting take(Search& search) {
    Meeting meeting = search.take();
    searches_.clear();
    is_done_ = true;
    timer_.set(Clock::time_point::max());
    return meeting;
  }

  void throw_if_final() const {
    for (const Search& each : searches_) {
      if (each.failure().is_final()) throw error_of(each.failure());
    }
  }

  /// Keeps the first answered search and stops the others. Their addresses are of the same host; they are tried again
  /// if that search fails.
  void keep_answered() {
    bool is_kept = false;
    for (Search& each : searches_) {
      if (each.runs() && (is_kept || !each.is_answered())) each.stop();
      is_kept |= each.is_answered();
    }
  }

  void begin_pass() {
    for (Search& each : searches_) each.stop();
    const auto now = Clock::now();
    next_pass_ = Clock::time_point::max();
    pass_end_ = now + kPassTime;
    begin_next(now);
  }

  /// Begins the search at the next address of the pass. False if all have been tried.
  bool begin_next(Clock::time_point now) {
    const auto next =
        std::ranges::find_if(searches_, [](const Search& each) { return each.state() == Search::State::idle; });
    if (next == searches_.end()) return false;
    next->begin(pass_, !until_);
    next_address_ = now + kHeadStart;
    return true;
  }

  void go_on(Clock::time_point now) {
    if (next_pass_ != Clock::time_point::max()) {
      if (now < next_pass_) return;
      ++pass_;
      begin_pass();
    }
    while (is_pass_over(now)) {
      if (begin_next(now)) continue;
      if (!until_ || !retry_.plan_next(until_)) give_up();
      next_pass_ = retry_.next();
      pass_end_ = Clock::time_point::max();
      return;
    }
    if (now >= next_address_ && !begin_next(now)) next_address_ = Clock::time_point::max();
    if (now >= pass_end_) pass_end_ = now + kPassTime;
  }

  /// Whether the pass is over. It does not wait for a silent address if the search of another one has ended. If there
  /// is only one pass, that other address must have been reached.
  [[nodiscard]] bool is_pass_over(Clock::time_point now) const {
    const auto has = [this](Search::State state) {
      return std::ranges::any_of(searches_, [state](const Search& each) { return each.state() == state; });
    };
    if (std::ranges::none_of(searches_, [](const Search& each) { return each.runs(); })) return true;
    const bool is_searched = std::ranges::any_of(searches_, [this](const Search& each) {
      return each.state() == Search::State::ended &&
             (until_ || each.failure().gravity == Failure::Gravity::nobody_listens);
    });
    return is_searched && now >= pass_end_ && !has(Search::State::asked) && !has(Search::State::idle);
  }

  void set_timer() {
    auto next = std::min(next_pass_, until_.value_or(Clock::time_point::max()));
    if (!is_answered() && next_pass_ == Clock::time_point::max()) next = std::min({next, next_address_, pass_end_});
    for (const Search& each : searches_) next = std::min(next, each.limit());
    // If every port has refused at once, no socket is left that could become readable: the timer fires now.
    const bool is_over =
        !lookup_ && !is_answered() && next_pass_ == Clock::time_point::max() && is_pass_over(Clock::now());
    timer_.set(is_over ? Clock::time_point::min() : next);
  }

  [[nodiscard]] Error error_of(const Failure& failure) const {
    using seconds = std::chrono::duration<double>;
    const bool is_waiting = until_ && !failure.is_final();
    const std::string waited = is_waiting ? "; waited " + human_time(seconds(retry_.waited()).count()) : "";
    return {failure.error != 0 ? failure.error : ETIMEDOUT, "connect", name_, failure.advice + waited};
  }

  const Wanted wanted_;
  const std::string name_;
  const Deadline until_;
  UniqueFd poller_;
  Timer timer_;
  std::optional<Lookup> lookup_;  // empty once its result was taken
  std::list<Search> searches_;    // in the order of their ids, which begin at 1
  RetrySchedule retry_;
  std::size_t pass_ = 0;
  Clock::time_point next_pass_ = Clock::time_point::max();
  Clock::time_point pass_end_ = Clock::time_point::max();
  Clock::time_point next_address_ = Clock::time_point::max();
  std::optional<Error> failure_;
  bool is_done_ = false;
};

RendezvousConnector::RendezvousConnector(const Settings& settings, const std::string& host, std::uint16_t node,
                                         std::uint16_t port, Introduction own, const Deadline& until)
    : state_(std::make_unique<State>(settings, host, node, port, std::move(own), until)) {}
RendezvousConnector::RendezvousConnector(RendezvousConnector&&) noexcept = default;
RendezvousConnector& RendezvousConnector::operator=(RendezvousConnector&&) noexcept = default;
RendezvousConnector::~RendezvousConnector() = default;

int RendezvousConnector::descriptor() const { return state_->descriptor(); }
std::optional<Meeting> RendezvousConnector::advance() { return state_->advance(); }
std::size_t RendezvousConnector::answers() const { return state_->answers(); }
void RendezvousConnector::give_up() const { state_->give_up(); }
std::string RendezvousConnector::obstacle() const { return state_->obstacle().advice; }
bool RendezvousConnector::waits_for_listener() const { return !state_->is_answered(); }

}  // namespace wherry::fabric::ofi
