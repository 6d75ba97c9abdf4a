// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/callers.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <wherry/error.hpp>

#include "fabric/ofi/hello.hpp"
#include "fabric/ofi/ports.hpp"

namespace wherry::fabric::ofi {
namespace {

constexpr std::uint32_t kListened = EPOLLIN | EPOLLRDHUP;

}  // namespace

Callers::Callers(const Settings& settings, std::uint16_t node, std::uint16_t port, int poller, std::uint64_t first_id)
    : settings_(settings),
      job_(job_number(settings.job)),
      node_(node),
      port_(port),
      poller_(poller),
      next_id_(first_id) {}

bool Callers::add(UniqueFd socket) {
  if (strangers_.size() >= kMostStrangers) {
    auto silent = std::ranges::find_if(strangers_, [](const auto& each) { return !each.second.asked; });
    strangers_.erase(silent == strangers_.end() ? strangers_.begin() : silent);
  }
  watch_host(socket.get(), settings_.host_timeout);
  const std::uint64_t id = next_id_++;
  if (!poll_for(poller_, socket.get(), kListened, id)) return false;
  Caller caller{
      .socket = std::move(socket),
      .give_up = Timer::Clock::now() + 2 * settings_.host_timeout,  // a connector gives up before, and knows why
      .transcript = Transcript(settings_.key),
      .incoming = {},
      .visitor = {}};
  caller.incoming.expect(sizeof(layout::Question));
  strangers_.emplace(id, std::move(caller));
  return true;
}

void Callers::hear(std::uint64_t id) {
  // A visitor sends nothing: it has ended, or it breaks the protocol.
  if (visitors_.erase(id) != 0) return;
  const auto found = strangers_.find(id);
  if (found == strangers_.end()) return;
  bool proved = false;
  if (!on_stranger(found->second, proved)) {
    strangers_.erase(found);
  } else if (proved) {
    visitors_.insert(strangers_.extract(found));
  }
}

/// Handles a message of a caller without a proof. False: drop the caller.
bool Callers::on_stranger(Caller& caller, bool& proved) {
  const Incoming::State state = caller.incoming.receive(caller.socket.get());
  if (state == Incoming::State::ended) return false;
  if (is_nonsense(caller)) return drop(caller, "it is no Wherry connector");
  if (state == Incoming::State::partial) return true;
  if (!caller.asked) return on_question(caller);
  proved = on_hello(caller);
  return proved;
}

/// Whether the magic number is wrong, which is known after the first 8 bytes.
bool Callers::is_nonsense(const Caller& caller) const {
  constexpr std::size_t kMagicEnd = 2 * sizeof(std::uint32_t);
  static_assert(offsetof(layout::Question, magic) == sizeof(std::uint32_t));
  const auto bytes = caller.incoming.bytes();
  std::uint32_t magic = layout::kRendezvousMagic;
  if (bytes.size() >= kMagicEnd) std::memcpy(&magic, &bytes[sizeof magic], sizeof magic);
  return magic != layout::kRendezvousMagic;
}

bool Callers::on_question(Caller& caller) {
  const auto question = caller.incoming.as<layout::Question>();
  if (question.version != layout::kRendezvousVersion) {
    (void)answer(caller, layout::Verdict::version);
    return drop(caller, "it speaks version " + std::to_string(question.version) + " and this process version " +
                            std::to_string(layout::kRendezvousVersion) + ": install the same Wherry on both hosts");
  }
  if (question.job != job_ || question.node != node_ || question.port != port_) {
    (void)answer(caller, layout::Verdict::no);
    return false;
  }
  if (visitors_.size() >= kMostVisitors) {
    (void)answer(caller, layout::Verdict::full);
    return drop(caller, std::to_string(kMostVisitors) + " connectors wait to be accepted; accept faster");
  }
  caller.asked = true;
  caller.transcript.add(std::as_bytes(std::span(&question, 1)));
  caller.incoming.expect(sizeof(layout::Hello));
  return answer(caller, layout::Verdict::yes);
}

bool Callers::answer(Caller& caller, layout::Verdict verdict) {
  layout::Answer answer{.version = layout::kRendezvousVersion,
                        .magic = layout::kRendezvousMagic,
                        .verdict = static_cast<std::uint32_t>(verdict),
                        .zero = 0,
                        .nonce = {}};
  make_nonce(answer.nonce);
  caller.transcript.add(std::as_bytes(std::span(&answer, 1)));
  return send_message(caller.socket.get(), answer);
}

bool Callers::on_hello(Caller& caller) {
  const auto& hello = caller.incoming.as<layout::Hello>();
  if (!is_well_formed(hello, job_) || hello.kind != static_cast<std::uint32_t>(layout::Kind::hello)) {
    return drop(caller, "its hello is malformed");
  }
  if (!is_proved(hello, caller.transcript, kConnectorRole)) {
    (void)send_message(caller.socket.get(), *make_hello(layout::Kind::wrong_key, job_, {}));
    return drop(caller, "it has another key; copy the file that WHERRY_KEY names to both hosts");
  }
  caller.visitor.peer = introduction_of(hello);
  try {
    caller.visitor.local = SocketAddress::local_of(caller.socket.get());
    caller.visitor.remote = SocketAddress::remote_of(caller.socket.get());
  } catch (const Error&) {
    return false;  // the caller has gone
  }
  const auto receipt = make_hello(layout::Kind::receipt, job_, {});
  prove(*receipt, caller.transcript, kListenerRole);
  return send_message(caller.socket.get(), *receipt);
}

/// Logs why a caller is dropped, and returns false.
bool Callers::drop(const Caller& caller, const std::string& why) {
  std::string from = "?";
  try {
    from = SocketAddress::remote_of(caller.socket.get()).to_string();
  } catch (const Error&) {
    // The caller has gone.
  }
  log_.write(log::Level::warning, "dropped a caller from " + from + " at port " + std::to_string(port_) + " of node " +
                                      std::to_string(node_) + ": " + why);
  return false;
}

void Callers::drop_late(Timer::Clock::time_point now) {
  while (!strangers_.empty() && strangers_.begin()->second.give_up <= now) strangers_.erase(strangers_.begin());
}

Timer::Clock::time_point Callers::next_late() const {
  return strangers_.empty() ? Timer::Clock::time_point::max() : strangers_.begin()->second.give_up;
}

const RendezvousListener::Visitor* Callers::visitor() const {
  return visitors_.empty() ? nullptr : &visitors_.begin()->second.visitor;
}

Caller Callers::take_visitor() {
  Caller caller = std::move(visitors_.begin()->second);
  visitors_.erase(visitors_.begin());
  (void)::epoll_ctl(poller_, EPOLL_CTL_DEL, caller.socket.get(), nullptr);
  return caller;
}

std::optional<Meeting> Callers::accept(const Introduction& own) {
  if (visitors_.empty()) return std::nullopt;
  const auto hello = make_hello(layout::Kind::hello, job_, own);
  Caller caller = take_visitor();
  prove(*hello, caller.transcript, kListenerRole);
  if (!send_message(caller.socket.get(), *hello)) return std::nullopt;
  return Meeting{.socket = std::move(caller.socket),
                 .peer = std::move(caller.visitor.peer),
                 .local = caller.visitor.local,
                 .remote = caller.visitor.remote,
                 .token = caller.transcript.proof(kTokenRole)};
}

void Callers::refuse(std::string_view reason) {
  if (visitors_.empty()) return;
  const auto refusal = make_refusal(job_, reason);
  Caller caller = take_visitor();
  prove(*refusal, caller.transcript, kListenerRole);
  (void)send_message(caller.socket.get(), *refusal);
}

}  // namespace wherry::fabric::ofi
