// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/search.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include <wherry/error.hpp>

#include "fabric/ofi/hello.hpp"

namespace wherry::fabric::ofi {
namespace {

/// The candidates of each pass. Most listeners have one of the first; the others are asked in turn.
constexpr std::size_t kFirstCandidates = 16;
constexpr std::size_t kOtherCandidates = 48;
/// If a port does not answer within this time, the next one is asked in parallel.
constexpr auto kProbeHeadStart = std::chrono::milliseconds(50);
/// Limits of patience_. While answers take only about a round trip, the next ports are asked without a head start, as
/// there may be a thousand. That stops if the oldest probe takes longer than earlier ones: it may be the right port,
/// and busy.
constexpr std::chrono::milliseconds kLeastPatience{1};
constexpr std::chrono::milliseconds kMostPatience{500};
/// Ports that are asked at the same time.
constexpr std::size_t kMostProbes = 16;
/// Ports that one call asks. Limited, as all may refuse at once, and other connections are not served meanwhile.
constexpr int kAskedAtOnce = 32;
constexpr const char* kPathMtu =
    "small packets pass, and large ones do not: path MTU? Lower the interface's MTU, or let ICMP pass";

}  // namespace

Search::Search(const Wanted& wanted, const SocketAddress& address, int poller, std::uint64_t id)
    : wanted_(wanted), address_(address), poller_(poller), id_(id), transcript_(wanted.settings.key) {}

std::size_t Search::candidates() const {
  return all_ ? wanted_.order.size() : std::min(wanted_.order.size(), kFirstCandidates + kOtherCandidates);
}

std::size_t Search::candidate(std::size_t index) const {
  if (index < kFirstCandidates || candidates() == wanted_.order.size()) return index;
  return kFirstCandidates +
         (pass_ * kOtherCandidates + index - kFirstCandidates) % (wanted_.order.size() - kFirstCandidates);
}

void Search::begin(std::size_t pass, bool all) {
  stop();
  pass_ = pass;
  all_ = all;
  next_ = 0;
  again_.clear();
  is_host_there_ = is_any_silent_ = false;
  patience_ = Clock::duration::zero();
  state_ = State::connecting;
  begin_waiting();
  ask_more(Clock::now());
}

void Search::begin_waiting() { pass_limit_ = Clock::now() + wanted_.settings.host_timeout + Probe::kAnswerTime; }

void Search::stop_probes() {
  probes_.clear();
  limit_ = pass_limit_ = next_probe_ = Clock::time_point::max();
}

void Search::stop() {
  stop_probes();
  socket_.reset();
  state_ = State::idle;
}

void Search::end() {
  stop();
  state_ = State::ended;
}

void Search::fail(Failure::Gravity gravity, int error, std::string advice) {
  if (gravity >= failure_.gravity) failure_ = {.gravity = gravity, .error = error, .advice = std::move(advice)};
}

std::optional<std::size_t> Search::take_candidate() {
  if (!again_.empty()) {
    const std::size_t index = again_.front();
    again_.pop_front();
    return index;
  }
  if (next_ == candidates()) return std::nullopt;
  return candidate(next_++);
}

bool Search::answers_soon(Clock::time_point now) const {
  return patience_ > Clock::duration::zero() && now < probes_.front().begun() + patience_;
}

/// Begins as many probes as are due, and derives the state and the limit from the running ones.
void Search::ask_more(Clock::time_point now) {
  if (now >= pass_limit_) {
    for (const Probe& probe : probes_) fail(probe.failure());
    return end();
  }
  bool is_left = true;
  int asked = 0;
  const auto is_due = [&] {
    return probes_.empty() || (probes_.size() < kMostProbes && (now >= next_probe_ || answers_soon(now)));
  };
  for (; is_left && asked < kAskedAtOnce && is_due(); ++asked) {
    is_left = begin_probe();
    if (state_ == State::ended) return;
  }
  if (probes_.empty() && !is_left) return end();
  state_ = std::ranges::any_of(probes_, &Probe::is_asked) ? State::asked : State::connecting;
  limit_ = pass_limit_;
  if (is_left && probes_.size() < kMostProbes) limit_ = asked == kAskedAtOnce ? now : std::min(limit_, next_probe_);
  for (const Probe& probe : probes_) limit_ = std::min(limit_, probe.limit());
}

/// Begins a probe of the next candidate. False if none is left, or if there is no descriptor while other probes run.
bool Search::begin_probe() {
  const auto index = take_candidate();
  if (!index) return false;
  next_probe_ = Clock::now() + kProbeHeadStart;
  try {
    probes_.emplace_back(wanted_, address_, *index, poller_, id_);
  } catch (const Error&) {
    if (probes_.empty()) throw;
    again_.push_front(*index);
    return false;
  }
  // Handles a result that is known at once, such as a refusal.
  (void)advance_probe(std::prev(probes_.end()), Clock::time_point::min());
  return true;
}

void Search::advance(Clock::time_point now) {
  if (!runs()) return;
  if (is_answered()) return advance_meeting(now);
  for (auto probe = probes_.begin(); probe != probes_.end();) {
    const auto next = std::next(probe);
    if (!advance_probe(probe, now)) return;
    probe = next;
  }
  ask_more(now);
}

/// Continues a probe. False if its result has changed the state of the search.
bool Search::advance_probe(std::list<Probe>::iterator probe, Clock::time_point now) {
  const Probe::Found found = probe->advance(now);
  is_host_there_ = is_host_there_ || probe->is_host_there();
  switch (found) {
    case Probe::Found::nothing_yet:
      return true;
    case Probe::Found::yes:
      introduce(probe);
      return false;
    default:
      break;
  }
  fail(probe->failure());
  is_any_silent_ = is_any_silent_ || found == Probe::Found::late;
  if (probe->is_host_there()) {
    ++answers_;
    const Clock::duration twice = 2 * (Clock::now() - probe->begun());
    patience_ = std::clamp<Clock::duration>(std::max(patience_, twice), kLeastPatience, kMostPatience);
    if (!is_any_silent_) begin_waiting();
  }
  probes_.erase(probe);
  // Continues after a silent port, as a firewall may pass others. Ends if the host has not answered at any port.
  const bool is_over = found == Probe::Found::unreachable || (found == Probe::Found::late && !is_host_there_);
  if (is_over) end();
  return !is_over;
}

void Search::advance_meeting(Clock::time_point now) {
  if (now >= limit_) {
    fail(pending());
    return end();
  }
  switch (incoming_.receive(socket_.get())) {
    case Incoming::State::partial:
      return;
    case Incoming::State::ended:
      return on_ended(incoming_.error());
    case Incoming::State::complete:
      break;
  }
  if (state_ == State::introduced) return on_receipt();
  on_hello();
}

Failure Search::pending() const {
  using enum Failure::Gravity;
  switch (state_) {
    case State::connecting:
    case State::asked:
      return probes_.empty() ? failure_ : probes_.front().failure();
    case State::introduced:
      return {.gravity = no_answer, .error = ETIMEDOUT, .advice = where() + " answered, but " + kPathMtu};
    case State::received:
      return {
          .gravity = lost, .error = ETIMEDOUT, .advice = "the program that listens at " + where() + " did not accept"};
    default:
      return failure_;
  }
}

/// Sends the hello to the port that answered yes. The other running candidates are kept, and are asked again if this
/// port turns out to have another key.
void Search::introduce(std::list<Probe>::iterator probe) {
  auto place = again_.begin();
  for (auto other = probes_.begin(); other != probes_.end(); ++other) {
    if (other != probe) place = std::next(again_.insert(place, other->candidate()));
  }
  tried_ = probe->tried();
  socket_ = probe->take_socket();
  transcript_ = probe->transcript();
  stop_probes();
  const auto hello = make_hello(layout::Kind::hello, wanted_.job, wanted_.own);
  prove(*hello, transcript_, kConnectorRole);
  state_ = State::introduced;
  if (!send_message(socket_.get(), *hello)) return on_ended(ECONNRESET);
  listen_for(State::introduced, sizeof(layout::Hello), wanted_.settings.host_timeout);
}

void Search::listen_for(State state, std::size_t bytes, Clock::duration time) {
  state_ = state;
  incoming_.expect(bytes);
  limit_ = time == Clock::duration::max() ? Clock::time_point::max() : Clock::now() + time;
  if (!poll_for(poller_, socket_.get(), EPOLLIN | EPOLLRDHUP, id_)) {
    throw Error(errno, "connect", tried_.to_string(), "raise fs.epoll.max_user_watches");
  }
}

void Search::on_receipt() {
  const auto& receipt = incoming_.as<layout::Hello>();
  const bool is_receipt = receipt.kind == static_cast<std::uint32_t>(layout::Kind::receipt);
  if (!is_well_formed(receipt, wanted_.job) || !is_receipt || !is_proved(receipt, transcript_, kListenerRole)) {
    fail(Failure::Gravity::key, EACCES,
         where() + " has another key; copy the file that WHERRY_KEY names to both hosts");
    return go_on();  // another user's listener may have an earlier candidate than the wanted one
  }
  listen_for(State::received, sizeof(layout::Hello), Clock::duration::max());
}

/// Continues the search as if the port had answered no.
void Search::go_on() {
  socket_.reset();
  state_ = State::connecting;
  begin_waiting();
  ask_more(Clock::now());
}

void Search::on_hello() {
  const auto& hello = incoming_.as<layout::Hello>();
  const bool is_hello = hello.kind == static_cast<std::uint32_t>(layout::Kind::hello);
  const bool is_refusal = hello.kind == static_cast<std::uint32_t>(layout::Kind::refusal);
  if (!is_well_formed(hello, wanted_.job) || (!is_hello && !is_refusal) ||
      !is_proved(hello, transcript_, kListenerRole)) {
    fail(Failure::Gravity::lost, EPROTO, where() + " sent a hello that is malformed or not proved");
    return end();
  }
  if (is_refusal) {
    fail(Failure::Gravity::lost, ECONNREFUSED, "the listener refused: " + reason_of(hello));
    return end();
  }
  peer_ = introduction_of(hello);
  state_ = State::met;
  (void)::epoll_ctl(poller_, EPOLL_CTL_DEL, socket_.get(), nullptr);
}

void Search::on_ended(int error) {
  if (state_ == State::received) {
    fail(Failure::Gravity::lost, error != 0 ? error : ECONNRESET, "the listener ended; start it again");
  } else if (error == ETIMEDOUT) {
    fail(pending());
  } else {
    fail(Failure::Gravity::full, ECONNREFUSED, where() + " closed the connection: too many connectors call there");
  }
  end();
}

Meeting Search::take() {
  Meeting meeting{.socket = std::move(socket_),
                  .peer = std::move(peer_),
                  .local = {},
                  .remote = {},
                  .token = transcript_.proof(kTokenRole)};
  end();
  meeting.local = SocketAddress::local_of(meeting.socket.get());
  meeting.remote = SocketAddress::remote_of(meeting.socket.get());
  return meeting;
}

}  // namespace wherry::fabric::ofi
