// SPDX-License-Identifier: Apache-2.0
#include "fabric/hosts/listener.hpp"

#include <sys/epoll.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include <wherry/error.hpp>

namespace wherry::fabric::hosts {
namespace {

Address on(const Fabric& fabric, const Address& wanted) {
  Address address = wanted;
  address.fabric = fabric.name();
  return address;
}

/// Listens at an address. Null if the port is in use.
std::unique_ptr<Listener> listen_if_free(Fabric& fabric, const Address& address) {
  try {
    return fabric.listen(on(fabric, address));
  } catch (const Error& error) {
    if (error.code().value() != EADDRINUSE) throw;
    return nullptr;
  }
}

}  // namespace

HostsListener::HostsListener(Fabric& here, Fabric& elsewhere, const Address& wanted) : local_(wanted) {
  listen(here, elsewhere, wanted);
  either_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  for (const auto& listener : listeners_) {
    epoll_event event{.events = EPOLLIN, .data = {}};
    if (!either_.valid() || ::epoll_ctl(either_.get(), EPOLL_CTL_ADD, listener->descriptor(), &event) != 0) {
      throw Error(errno, "listen", wanted.to_string(), "raise the limit of open files: ulimit -n");
    }
  }
}

void HostsListener::listen(Fabric& here, Fabric& elsewhere, const Address& wanted) {
  auto& [near, far] = listeners_;
  near = here.listen(on(here, wanted));
  local_.port = near->local().port;
  if (wanted.port) {
    far = elsewhere.listen(on(elsewhere, local_));
    return;
  }
  far = listen_if_free(elsewhere, local_);
  while (far == nullptr && *local_.port < UINT16_MAX) {
    ++*local_.port;
    near = listen_if_free(here, local_);
    if (near != nullptr) far = listen_if_free(elsewhere, local_);
  }
  if (far == nullptr) {
    throw Error(EADDRINUSE, "listen", wanted.to_string(), "no port is free on both fabrics; stop a listener");
  }
}

std::unique_ptr<Connection> HostsListener::try_accept(const Offer& offer) {
  // Changes the order before the calls, which may throw, so that a failing listener does not starve the other.
  const std::size_t first = next_;
  next_ = 1 - next_;
  if (auto connection = listeners_[first]->try_accept(offer)) return connection;
  return listeners_[1 - first]->try_accept(offer);
}

}  // namespace wherry::fabric::hosts
