// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/search.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <wherry/error.hpp>

#include "fabric/ofi/hello.hpp"

namespace wherry::fabric::ofi {
namespace {

/// The candidates of each pass: most listeners hold one of the first; the others are asked in turn.
constexpr std::size_t kFirstCandidates = 16;
constexpr std::size_t kOtherCandidates = 48;
/// What takes a connection and says nothing is another program, or a process that is stopped.
constexpr auto kAnswerTime = std::chrono::seconds(2);
constexpr const char* kFirewall = "a firewall drops it? Let in the TCP ports of WHERRY_PORTS on that host";
constexpr const char* kPathMtu =
    "small packets pass, and large ones do not: path MTU? Lower the interface's MTU, or let ICMP pass";

bool is_refusal(int error) { return error == ECONNREFUSED || error == ECONNRESET; }

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
  pass_ = pass;
  all_ = all;
  next_ = 0;
  next_port();
}

void Search::stop() {
  socket_.reset();
  state_ = State::idle;
  limit_ = Clock::time_point::max();
}

void Search::end() {
  stop();
  state_ = State::ended;
}

void Search::fail(Failure::Gravity gravity, int error, std::string advice) {
  if (gravity >= failure_.gravity) failure_ = {.gravity = gravity, .error = error, .advice = std::move(advice)};
}

void Search::next_port() {
  stop();
  while (next_ < candidates()) {
    tried_ = address_.with_port(wanted_.order[candidate(next_++)]);
    if (connect()) return;
  }
  end();
}

/// False: refused at once.
bool Search::connect() {
  socket_ = UniqueFd(::socket(address_.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_.valid()) {
    if (errno == EAFNOSUPPORT) return on_connect_error(errno);
    throw Error(errno, "connect", tried_.to_string(), "raise the limit of open files: ulimit -n");
  }
  watch_host(socket_.get(), wanted_.settings.host_timeout);
  const int result = ::connect(socket_.get(), tried_.get(), tried_.length());
  if (result != 0 && errno != EINPROGRESS) return on_connect_error(errno);
  state_ = State::connecting;
  limit_ = Clock::now() + wanted_.settings.host_timeout;
  if (!poll_for(poller_, socket_.get(), EPOLLOUT, id_)) {
    throw Error(errno, "connect", tried_.to_string(), "raise fs.epoll.max_user_watches");
  }
  return true;
}

/// False: the next port may be tried.
bool Search::on_connect_error(int error) {
  if (is_refusal(error)) {
    fail(Failure::Gravity::nobody_listens, ECONNREFUSED,
         "nobody listens there; start the listener, or compare WHERRY_JOB and WHERRY_PORTS of both hosts");
    return false;
  }
  if (error == ETIMEDOUT) {
    fail(Failure::Gravity::no_answer, ETIMEDOUT, where() + " did not answer: " + kFirewall);
  } else {
    fail(Failure::Gravity::unreachable, error == EACCES || error == EPERM ? EHOSTUNREACH : error,
         where() + " cannot be reached; correct its address in WHERRY_HOSTS, or the route to it");
  }
  end();
  return true;
}

void Search::advance(Clock::time_point now) {
  if (!runs()) return;
  if (now >= limit_) {
    const Failure late = pending();
    fail(late.gravity, late.error, late.advice);
    if (state_ == State::asked) return next_port();
    return end();
  }
  if (state_ == State::connecting) return on_connected();
  switch (incoming_.receive(socket_.get())) {
    case Incoming::State::partial:
      return;
    case Incoming::State::ended:
      return on_ended(incoming_.error());
    case Incoming::State::complete:
      break;
  }
  if (state_ == State::asked) return on_answer();
  if (state_ == State::introduced) return on_receipt();
  on_hello();
}

Failure Search::pending() const {
  using enum Failure::Gravity;
  switch (state_) {
    case State::connecting:
      return {.gravity = no_answer, .error = ETIMEDOUT, .advice = where() + " did not answer: " + kFirewall};
    case State::asked:
      return {
          .gravity = nobody_listens,
          .error = ECONNREFUSED,
          .advice = where() + " took the connection and said nothing: another program's port, or a stopped process"};
    case State::introduced:
      return {.gravity = no_answer, .error = ETIMEDOUT, .advice = where() + " answered, but " + kPathMtu};
    case State::received:
      return {
          .gravity = lost, .error = ETIMEDOUT, .advice = "the program that listens at " + where() + " did not accept"};
    default:
      return failure_;
  }
}

void Search::on_connected() {
  pollfd state{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
  if (::poll(&state, 1, 0) != 1) return;
  int error = 0;
  socklen_t length = sizeof error;
  (void)::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) {
    if (!on_connect_error(error)) next_port();
    return;
  }
  layout::Question question{.version = layout::kRendezvousVersion,
                            .magic = layout::kRendezvousMagic,
                            .job = wanted_.job,
                            .node = wanted_.node,
                            .port = wanted_.port,
                            .zero = 0,
                            .nonce = {}};
  make_nonce(question.nonce);
  transcript_ = Transcript(wanted_.settings.key);
  transcript_.add(std::as_bytes(std::span(&question, 1)));
  // A connection to an own port may be given that same port, and then ends in itself.
  sockaddr_storage own{};
  length = sizeof own;
  const bool is_own = ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
                      SocketAddress(reinterpret_cast<const sockaddr*>(&own), length).to_string() == tried_.to_string();
  if (is_own || !send_message(socket_.get(), question)) {
    if (!on_connect_error(ECONNREFUSED)) next_port();
    return;
  }
  listen_for(State::asked, sizeof(layout::Answer), kAnswerTime);
}

void Search::listen_for(State state, std::size_t bytes, Clock::duration time) {
  state_ = state;
  incoming_.expect(bytes);
  limit_ = time == Clock::duration::max() ? Clock::time_point::max() : Clock::now() + time;
  if (!poll_for(poller_, socket_.get(), EPOLLIN | EPOLLRDHUP, id_)) {
    throw Error(errno, "connect", tried_.to_string(), "raise fs.epoll.max_user_watches");
  }
}

void Search::on_answer() {
  const auto answer = incoming_.as<layout::Answer>();
  if (answer.magic != layout::kRendezvousMagic) return next_port();
  if (answer.version != layout::kRendezvousVersion) {
    fail(Failure::Gravity::version, EPROTO,
         where() + " speaks version " + std::to_string(answer.version) + " and this process version " +
             std::to_string(layout::kRendezvousVersion) + "; install the same Wherry on both hosts");
    return next_port();
  }
  if (answer.verdict == static_cast<std::uint32_t>(layout::Verdict::full)) {
    fail(Failure::Gravity::full, ECONNREFUSED, "too many connectors wait there to be accepted; accept faster");
    return end();
  }
  if (answer.verdict != static_cast<std::uint32_t>(layout::Verdict::yes)) return next_port();
  transcript_.add(std::as_bytes(std::span(&answer, 1)));
  const auto hello = make_hello(layout::Kind::hello, wanted_.job, wanted_.own);
  prove(*hello, transcript_, kConnectorRole);
  if (!send_message(socket_.get(), *hello)) return on_ended(ECONNRESET);
  listen_for(State::introduced, sizeof(layout::Hello), wanted_.settings.host_timeout);
}

void Search::on_receipt() {
  const auto& receipt = incoming_.as<layout::Hello>();
  const bool is_receipt = receipt.kind == static_cast<std::uint32_t>(layout::Kind::receipt);
  if (!is_well_formed(receipt, wanted_.job) || !is_receipt || !is_proved(receipt, transcript_, kListenerRole)) {
    fail(Failure::Gravity::key, EACCES,
         where() + " has another key; copy the file that WHERRY_KEY names to both hosts");
    return next_port();  // another user's listener may stand before the one that is looked for
  }
  listen_for(State::received, sizeof(layout::Hello), Clock::duration::max());
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
  if (state_ == State::asked) {
    fail(Failure::Gravity::nobody_listens, ECONNREFUSED, where() + " closed the connection: another program's port");
    return next_port();
  }
  if (state_ == State::received) {
    fail(Failure::Gravity::lost, error != 0 ? error : ECONNRESET, "the listener ended; start it again");
  } else if (error == ETIMEDOUT) {
    const Failure late = pending();
    fail(late.gravity, late.error, late.advice);
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

std::string Search::where() const { return tried_.to_string(); }

}  // namespace wherry::fabric::ofi
