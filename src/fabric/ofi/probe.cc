// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/probe.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <span>
#include <utility>

#include <wherry/error.hpp>

#include "fabric/ofi/hello.hpp"

namespace wherry::fabric::ofi {
namespace {

constexpr const char* kNobody =
    "nobody listens there; start the listener, or compare WHERRY_JOB and WHERRY_PORTS of both hosts";
constexpr const char* kFirewall = "a firewall drops it? Let in the TCP ports of WHERRY_PORTS on that host";

bool is_refusal(int error) { return error == ECONNREFUSED || error == ECONNRESET; }

void poll_or_throw(int poller, int socket, std::uint32_t events, std::uint64_t id, const SocketAddress& tried) {
  if (poll_for(poller, socket, events, id)) return;
  throw Error(errno, "connect", tried.to_string(), "raise fs.epoll.max_user_watches");
}

}  // namespace

Probe::Probe(const Wanted& wanted, const SocketAddress& address, std::size_t candidate, int poller, std::uint64_t id)
    : wanted_(wanted),
      candidate_(candidate),
      tried_(address.with_port(wanted.order[candidate])),
      poller_(poller),
      id_(id),
      socket_(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
      limit_(Clock::now() + wanted.settings.host_timeout) {
  int error = socket_.valid() ? 0 : errno;
  if (error != 0 && error != EAFNOSUPPORT) {
    throw Error(error, "connect", tried_.to_string(), "raise the limit of open files: ulimit -n");
  }
  if (error == 0) {
    watch_host(socket_.get(), wanted.settings.host_timeout);
    error = ::connect(socket_.get(), tried_.get(), tried_.length()) == 0 ? 0 : errno;
  }
  if (error == 0 || error == EINPROGRESS) {
    poll_or_throw(poller_, socket_.get(), EPOLLOUT, id_, tried_);
  } else {
    settled_ = on_connect_error(error);
  }
}

Probe::Found Probe::advance(Clock::time_point now) {
  if (settled_ != Found::nothing_yet) return settled_;
  if (now >= limit_) return settled_ = Found::late;
  if (!is_asked_) return settled_ = on_connected();
  switch (incoming_.receive(socket_.get())) {
    case Incoming::State::partial:
      return Found::nothing_yet;
    case Incoming::State::ended:
      return settled_ = settle(Found::no, Failure::Gravity::nobody_listens, ECONNREFUSED,
                               tried_.to_string() + " closed the connection: another program's port");
    default:
      return settled_ = on_answer();
  }
}

Failure Probe::failure() const {
  if (failure_) return *failure_;
  if (!is_asked_) {
    return {.gravity = Failure::Gravity::no_answer,
            .error = ETIMEDOUT,
            .advice = tried_.to_string() + " did not answer: " + kFirewall};
  }
  return {.gravity = Failure::Gravity::nobody_listens,
          .error = ECONNREFUSED,
          .advice = tried_.to_string() +
                    " took the connection and said nothing: another program's port, or a stopped process"};
}

Probe::Found Probe::settle(Found found, Failure::Gravity gravity, int error, std::string advice) {
  failure_ = Failure{.gravity = gravity, .error = error, .advice = std::move(advice)};
  return found;
}

Probe::Found Probe::on_connect_error(int error) {
  if (is_refusal(error)) {
    is_host_there_ = true;
    return settle(Found::no, Failure::Gravity::nobody_listens, ECONNREFUSED, kNobody);
  }
  if (error == ETIMEDOUT) return Found::late;
  return settle(Found::unreachable, Failure::Gravity::unreachable,
                error == EACCES || error == EPERM ? EHOSTUNREACH : error,
                tried_.to_string() + " cannot be reached; correct its address in WHERRY_HOSTS, or the route to it");
}

/// Whether the socket is connected to itself. That may happen with a port of this host: the kernel may choose the same
/// port as the local one.
bool Probe::is_connected_with_itself() const {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  return ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
         SocketAddress(reinterpret_cast<const sockaddr*>(&own), length).to_string() == tried_.to_string();
}

Probe::Found Probe::on_connected() {
  pollfd state{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
  if (::poll(&state, 1, 0) != 1) return Found::nothing_yet;
  int error = 0;
  socklen_t length = sizeof error;
  (void)::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return on_connect_error(error);
  layout::Question question{.version = layout::kRendezvousVersion,
                            .magic = layout::kRendezvousMagic,
                            .job = wanted_.job,
                            .node = wanted_.node,
                            .port = wanted_.port,
                            .zero = 0,
                            .nonce = {}};
  make_nonce(question.nonce);
  transcript_.emplace(wanted_.settings.key);
  transcript_->add(std::as_bytes(std::span(&question, 1)));
  if (is_connected_with_itself() || !send_message(socket_.get(), question)) return on_connect_error(ECONNREFUSED);
  is_asked_ = is_host_there_ = true;
  incoming_.expect(sizeof(layout::Answer));
  limit_ = Clock::now() + kAnswerTime;
  poll_or_throw(poller_, socket_.get(), EPOLLIN | EPOLLRDHUP, id_, tried_);
  return Found::nothing_yet;
}

Probe::Found Probe::on_answer() {
  const auto answer = incoming_.as<layout::Answer>();
  if (answer.magic != layout::kRendezvousMagic) {
    return settle(Found::no, Failure::Gravity::nobody_listens, ECONNREFUSED,
                  tried_.to_string() + " is another program's port; compare WHERRY_PORTS of both hosts");
  }
  if (answer.version != layout::kRendezvousVersion) {
    return settle(Found::no, Failure::Gravity::version, EPROTO,
                  tried_.to_string() + " speaks version " + std::to_string(answer.version) +
                      " and this process version " + std::to_string(layout::kRendezvousVersion) +
                      "; install the same Wherry on both hosts");
  }
  if (answer.verdict == static_cast<std::uint32_t>(layout::Verdict::full)) {
    return settle(Found::unreachable, Failure::Gravity::full, ECONNREFUSED,
                  "too many connectors wait there to be accepted; accept faster");
  }
  if (answer.verdict != static_cast<std::uint32_t>(layout::Verdict::yes)) {
    return settle(Found::no, Failure::Gravity::nobody_listens, ECONNREFUSED, kNobody);
  }
  transcript_->add(std::as_bytes(std::span(&answer, 1)));
  return Found::yes;
}

}  // namespace wherry::fabric::ofi
