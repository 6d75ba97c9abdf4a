// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/meeting_point.hpp"

#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include <wherry/error.hpp>

#include "base/config.hpp"
#include "base/log.hpp"
#include "base/refused_call.hpp"
#include "fabric/check.hpp"
#include "fabric/wait_for_events.hpp"

namespace wherry::fabric::ofi {
namespace {

/// What a listener tells in its introduction beside what all do: the port of its data endpoints.
std::vector<std::byte> data_of(std::uint16_t data_port) {
  std::vector<std::byte> data(sizeof(data_port));
  std::memcpy(data.data(), &data_port, sizeof(data_port));
  return data;
}

/// 0: it makes no sense.
std::uint16_t data_port_of(const Introduction& peer) {
  std::uint16_t port = 0;
  if (peer.data.size() == sizeof(port)) std::memcpy(&port, peer.data.data(), sizeof(port));
  return port;
}

/// Null, or why a peer is refused for the size of its segment.
const char* objection_to(std::uint64_t segment_bytes) {
  const bool fits = segment_bytes > 0 && segment_bytes <= kMaxSegmentBytes;
  return fits ? nullptr : "its segment has no size that a segment may have";
}

Peer peer_of(const Introduction& peer, const std::string& fabric) {
  Address address{.fabric = fabric, .node = peer.node, .port = std::nullopt};
  if (peer.port != 0) address.port = peer.port;
  return Peer{.address = std::move(address)};
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
      // For the program, which learns of it by try_accept.
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
    throw Error(EBADF, "accept", local_.to_string(), "this listener is of the process that made it; listen again");
  }
  const std::lock_guard lock(service_.mutex());
  if (port_->failure) throw Error(*std::exchange(port_->failure, std::nullopt));
  auto connection = port_->rendezvous.visitor() == nullptr ? nullptr : meet(offer);
  if (port_->rendezvous.visitor() == nullptr) port_->waiting.silence();
  return connection;
}

/// With the service's mutex held: the data endpoint of the connector knocks as soon as it has the answer, and is then to
/// be expected. Null: the visitors have gone or were refused.
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
    Peer peer = peer_of(meeting->peer, local_.fabric);
    const Link::Sides sides{segment.bytes(), meeting->peer.segment_bytes, offer.exposes};
    auto connection = std::make_unique<OfiConnection>(std::move(segment), link, std::move(peer), offer.exposes);
    link->expect(service_, std::move(*meeting), sides);
    return connection;
  }
  return nullptr;
}

OfiConnecting::OfiConnecting(const Settings& settings, const std::string& host, const Address& address,
                             const Offer& offer)
    : service_(Service::instance()),
      address_(address),
      exposes_(offer.exposes),
      segment_(offer),
      link_(std::make_shared<Link>()),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_.valid()) throw Error(errno, "connect to", address.to_string(), advice_on(errno, "epoll_create1"));
  const Introduction own{.node = own_node(),
                         .port = 0,
                         .segment_bytes = offer.segment_bytes,
                         .greeting = offer.greeting,
                         .data = {}};
  rendezvous_.emplace(settings, host, *address.node, *address.port, own, Deadline{});
  find_listener();
  watch(rendezvous_->descriptor());
  watch(link_->opening_descriptor());
}

OfiConnecting::~OfiConnecting() {
  if (link_ != nullptr && !origin_.inherited()) link_->close();
}

void OfiConnecting::watch(int descriptor) const {
  epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
    throw Error(errno, "connect to", address_.to_string(), advice_on(errno, "epoll_ctl"));
  }
}

/// Hosts answer, not programs: this ends soon, or by the time that a rendezvous gives a host.
void OfiConnecting::find_listener() {
  while (rendezvous_->waits_for_listener()) {
    (void)wait_until_readable(rendezvous_->descriptor(), {});
    if (rendezvous_->waits_for_listener() && met_) break;
    if (!met_) met_ = rendezvous_->advance();
  }
}

std::unique_ptr<Connection> OfiConnecting::try_finish() {
  if (origin_.inherited()) {
    throw Error(EBADF, "connect to", address_.to_string(),
                "this attempt is of the process that started it; connect again after a fork");
  }
  if (rendezvous_) {
    if (!met_) met_ = rendezvous_->advance();
    if (!met_) return nullptr;
    begin_link(std::move(*met_));
  }
  if (link_->is_gone() && !link_->is_ended_by_peer()) {
    throw Error(ECONNREFUSED, "connect to", address_.to_string(),
                "its data port " + std::to_string(data_port_) +
                    " could not be reached, or the listener ended; let a firewall pass all of WHERRY_PORTS");
  }
  if (!link_->is_open() && !link_->is_gone()) return nullptr;
  Peer peer{.address = address_};
  return std::make_unique<OfiConnection>(std::move(*segment_), std::exchange(link_, nullptr), std::move(peer),
                                         exposes_);
}

void OfiConnecting::begin_link(Meeting meeting) {
  rendezvous_.reset();
  data_port_ = data_port_of(meeting.peer);
  if (data_port_ == 0 || objection_to(meeting.peer.segment_bytes) != nullptr) {
    throw Error(EPROTO, "connect to", address_.to_string(), "the listener's answer makes no sense; use one version");
  }
  const Link::Sides sides{segment_->bytes(), meeting.peer.segment_bytes, exposes_};
  const std::lock_guard lock(service_.mutex());
  link_->dial(service_, std::move(meeting), sides, data_port_);
}

}  // namespace wherry::fabric::ofi
