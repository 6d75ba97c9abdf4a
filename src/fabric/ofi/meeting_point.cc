// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/meeting_point.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include <wherry/error.hpp>

#include "base/config.hpp"
#include "base/log.hpp"
#include "fabric/check.hpp"
#include "fabric/ofi/meeting_socket.hpp"

namespace wherry::fabric::ofi {
namespace {

/// Returns the data of a listener's introduction: the port of its data endpoints.
std::vector<std::byte> data_of(std::uint16_t data_port) {
  std::vector<std::byte> data(sizeof(data_port));
  std::memcpy(data.data(), &data_port, sizeof(data_port));
  return data;
}

/// Returns the port from a listener's introduction; 0 if it is invalid.
std::uint16_t data_port_of(const Introduction& peer) {
  std::uint16_t port = 0;
  if (peer.data.size() == sizeof(port)) std::memcpy(&port, peer.data.data(), sizeof(port));
  return port;
}

/// Returns why a peer is refused for the size of its segment; null if it is accepted.
const char* objection_to(std::uint64_t segment_bytes) {
  const bool fits = segment_bytes > 0 && segment_bytes <= kMaxSegmentBytes;
  return fits ? nullptr : "its segment has no size that a segment may have";
}

/// Returns the timeout of each step that waits only for the other host. If a step times out, the cause is known,
/// whereas the caller's limit would only tell that the time is over. Two steps together take at most that limit. The
/// timeout is at least 200 ms, so that a live host has time to answer even if the limit is short.
std::chrono::milliseconds answer_time(const Settings& settings) {
  constexpr std::chrono::milliseconds kLeast{200};
  const std::chrono::milliseconds connect_time(config::number(config::Key::connect_timeout));
  if (connect_time.count() == 0) return settings.host_timeout;
  return std::min(settings.host_timeout, std::max(connect_time / 2, kLeast));
}

Peer peer_of(const Meeting& meeting, const std::string& fabric) {
  Address address{.fabric = fabric, .node = meeting.peer.node, .port = std::nullopt};
  if (meeting.peer.port != 0) address.port = meeting.peer.port;
  return Peer{.address = std::move(address), .host = meeting.remote.host()};
}

}  // namespace

/// Driven by the service, with its mutex held.
class OfiListener::Port final : public Served {
 public:
  Port(const Settings& settings, std::uint16_t node, std::optional<std::uint16_t> port)
      : rendezvous(settings, node, port) {}

  bool serve(int /*descriptor*/) override {
    try {
      rendezvous.advance();
      failure.reset();
    } catch (const Error& error) {
      // Kept for the program: try_accept throws it.
      failure = error;
      waiting.notify();
    }
    if (rendezvous.visitor() != nullptr) waiting.notify();
    return false;
  }

  RendezvousListener rendezvous;
  EventBell waiting;
  std::optional<Error> failure;
};

OfiListener::OfiListener(const Settings& settings, const Address& address)
    : settings_(settings),
      service_(Service::instance()),
      port_(std::make_shared<Port>(settings, node_to_bind(address), address.port)),
      local_{.fabric = address.fabric, .node = node_to_bind(address), .port = port_->rendezvous.port()} {
  const std::lock_guard lock(service_.mutex());
  service_.watch(port_->rendezvous.descriptor(), port_);
}

OfiListener::~OfiListener() {
  if (origin_.inherited()) return;
  const std::lock_guard lock(service_.mutex());
  service_.unwatch(port_->rendezvous.descriptor());
  port_.reset();
}

int OfiListener::descriptor() const { return port_->waiting.descriptor(); }

std::unique_ptr<Connection> OfiListener::try_accept(const Offer& offer) {
  check_offer("accept", local_, offer);
  if (origin_.inherited()) {
    throw Error(EBADF, "accept", local_.to_string(), "this listener belongs to the process that made it; listen again");
  }
  const std::lock_guard lock(service_.mutex());
  if (port_->failure) throw Error(*std::exchange(port_->failure, std::nullopt));
  auto connection = port_->rendezvous.visitor() == nullptr ? nullptr : meet(offer);
  if (port_->rendezvous.visitor() == nullptr) port_->waiting.silence();
  return connection;
}

/// Accepts a visitor. Null if all visitors have gone or were refused. The service's mutex is held until the link
/// expects the connector's data endpoint, which connects as soon as the connector has the answer.
std::unique_ptr<Connection> OfiListener::meet(const Offer& offer) {
  while (const auto* visitor = port_->rendezvous.visitor()) {
    const Introduction& caller = visitor->peer;
    const char* objection = objection_to(caller.segment_bytes);
    if (objection == nullptr && offer.objection != nullptr) {
      objection = offer.objection(caller.greeting, caller.segment_bytes);
    }
    if (objection != nullptr) {
      log::write(log::Level::warning, "refused a connector at " + local_.to_string() + ": " + objection);
      port_->rendezvous.refuse(objection);
      continue;
    }
    const SocketAddress local = visitor->local;
    auto link = std::make_shared<Link>();
    const std::uint16_t data_port = service_.domain().listen(local, settings_.ports);
    OwnSegment segment(offer);
    const Introduction own{.node = *local_.node,
                           .port = *local_.port,
                           .segment_bytes = offer.segment_bytes,
                           .greeting = offer.greeting,
                           .data = data_of(data_port)};
    auto meeting = port_->rendezvous.accept(own);
    if (!meeting) continue;
    Peer peer = peer_of(*meeting, local_.fabric);
    const Link::Sides sides{segment.bytes(), meeting->peer.segment_bytes, offer.exposes};
    auto connection = std::make_unique<OfiConnection>(std::move(segment), link, std::move(peer), offer.exposes);
    link->expect(service_, std::move(*meeting), sides);
    return connection;
  }
  return nullptr;
}

/// An attempt to connect, driven by the service, so that messages of the hosts do not wait for the connector's program.
/// With the service's mutex held.
class OfiConnecting::Attempt final : public Served, public std::enable_shared_from_this<Attempt> {
 public:
  Attempt(const Settings& settings, const std::string& host, const Address& address, const Introduction& own,
          const Link::Sides& sides)
      : news(std::make_shared<EventBell>()),
        link(std::make_shared<Link>(news)),
        answer_time_(answer_time(settings)),
        rendezvous_(std::in_place, settings, host, *address.node, *address.port, own, Deadline{}),
        timer_(std::in_place),
        address_(address),
        sides_(sides) {}

  void begin(Service& service) {
    service_ = &service;
    set_timer(Timer::Clock::now());
    service.watch(rendezvous_->descriptor(), shared_from_this());
    service.watch(timer_->descriptor(), shared_from_this());
  }

  bool serve(int descriptor) override {
    try {
      if (timer_ && descriptor == timer_->descriptor()) on_timer();
      if (rendezvous_) advance();
    } catch (const Error& error) {
      failure = error;
      stop();
      news->notify();
    }
    return false;
  }

  void stop() noexcept {
    if (rendezvous_) service_->unwatch(rendezvous_->descriptor());
    rendezvous_.reset();
    if (timer_) service_->unwatch(timer_->descriptor());
    timer_.reset();
  }

  /// Returns why no listener was found so far.
  [[nodiscard]] std::string obstacle() const { return rendezvous_ ? rendezvous_->obstacle() : failure->advice(); }

  const std::shared_ptr<const EventBell> news;
  const std::shared_ptr<Link> link;
  std::optional<Error> failure;
  bool has_found_listener = false;
  std::string data_address;  // the address to which the data endpoint connects

 private:
  void advance() {
    auto met = rendezvous_->advance();
    if (!has_found_listener && !rendezvous_->waits_for_listener()) {
      has_found_listener = true;
      timer_->set(Timer::Clock::time_point::max());  // now it waits for a program
    }
    if (rendezvous_->answers() != answers_) {
      answers_ = rendezvous_->answers();
      last_answer_ = Timer::Clock::now();
    }
    if (met) dial(std::move(*met));
  }

  void dial(Meeting meeting) {
    stop();
    const std::uint16_t data_port = data_port_of(meeting.peer);
    if (data_port == 0 || objection_to(meeting.peer.segment_bytes) != nullptr) {
      throw Error(EPROTO, "connect to", address_.to_string(),
                  "the listener's answer is invalid; use one version of Wherry on both hosts");
    }
    sides_.peer_bytes = meeting.peer.segment_bytes;
    data_address = meeting.remote.with_port(data_port).to_string();
    // libfabric does not report a packet that a firewall drops.
    timer_.emplace();
    set_timer(Timer::Clock::now());
    service_->watch(timer_->descriptor(), shared_from_this());
    link->dial(*service_, std::move(meeting), sides_, data_port);
  }

  void set_timer(Timer::Clock::time_point last_answer) {
    last_answer_ = last_answer;
    timer_->set(last_answer + answer_time_);
  }

  void on_timer() {
    if (rendezvous_) {
      if (has_found_listener) return;
      if (Timer::Clock::now() >= last_answer_ + answer_time_) rendezvous_->give_up();
      return set_timer(last_answer_);
    }
    stop();
    if (link->is_open() || link->is_ending()) return;
    throw Error(
        ETIMEDOUT, "connect to", address_.to_string(),
        data_address + ", its data port, did not answer: a firewall drops it? Let in all of WHERRY_PORTS on that host");
  }

  const std::chrono::milliseconds answer_time_;
  std::optional<RendezvousConnector> rendezvous_;
  std::optional<Timer> timer_;  // the time for the host to answer, and then for its data endpoint
  std::size_t answers_ = 0;
  Timer::Clock::time_point last_answer_{};
  const Address address_;
  Link::Sides sides_;
  Service* service_ = nullptr;
};

OfiConnecting::OfiConnecting(const Settings& settings, const std::string& host, const Address& address,
                             const Offer& offer)
    : address_(address), host_(host), exposes_(offer.exposes), segment_(offer) {
  const Introduction own{
      .node = own_node(), .port = 0, .segment_bytes = offer.segment_bytes, .greeting = offer.greeting, .data = {}};
  attempt_ = std::make_shared<Attempt>(settings, host, address, own, Link::Sides{segment_->bytes(), 0, offer.exposes});
  service_ = &Service::instance();
  const std::lock_guard lock(service_->mutex());
  try {
    attempt_->begin(*service_);
  } catch (...) {
    attempt_->stop();
    throw;
  }
}

OfiConnecting::~OfiConnecting() {
  if (finished_ || origin_.inherited()) return;
  {
    const std::lock_guard lock(service_->mutex());
    attempt_->stop();
  }
  attempt_->link->close();
}

int OfiConnecting::descriptor() const { return attempt_->news->descriptor(); }

bool OfiConnecting::waits_for_listener() const {
  if (origin_.inherited()) return false;
  const std::lock_guard lock(service_->mutex());
  return !attempt_->has_found_listener;
}

std::string OfiConnecting::obstacle() const {
  if (origin_.inherited()) return Connecting::obstacle();
  const std::lock_guard lock(service_->mutex());
  return attempt_->has_found_listener ? Connecting::obstacle() : attempt_->obstacle();
}

std::unique_ptr<Connection> OfiConnecting::try_finish() {
  if (origin_.inherited()) {
    throw Error(EBADF, "connect to", address_.to_string(),
                "this attempt belongs to the process that started it; connect again after a fork");
  }
  const auto link = attempt_->link;
  {
    const std::lock_guard lock(service_->mutex());
    if (attempt_->failure) {
      const Error& failure = *attempt_->failure;
      const int error = failure.code().value();
      throw Error(error == ECONNRESET ? ECONNREFUSED : error, failure.operation(), failure.address(), failure.advice());
    }
    if (link->is_gone() && !link->is_ended_by_peer()) {
      throw Error(ECONNREFUSED, "connect to", address_.to_string(),
                  attempt_->data_address + ", its data port, refuses; let the firewalls pass all of WHERRY_PORTS");
    }
    if (!link->is_open() && !link->is_gone()) return nullptr;
    attempt_->stop();
  }
  link->forget_opening();
  Peer peer{.address = address_, .host = host_};
  auto connection = std::make_unique<OfiConnection>(std::move(*segment_), link, std::move(peer), exposes_);
  finished_ = true;
  return connection;
}

}  // namespace wherry::fabric::ofi
