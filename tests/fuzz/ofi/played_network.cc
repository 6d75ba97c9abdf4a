// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/ofi/played_network.hpp"

#include <pthread.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "fabric/ofi/link.hpp"
#include "fabric/ofi/service.hpp"

/// std::condition_variable sleeps by this call where there is a deadline: the program's own definition comes before the
/// C library's. The caller looks at its clock and its condition again, as after a spurious wake-up.
extern "C" int pthread_cond_clockwait(pthread_cond_t* /*condition*/, pthread_mutex_t* mutex, clockid_t /*clock*/,
                                      const timespec* /*until*/) {
  ::pthread_mutex_unlock(mutex);
  wherry::fuzz::PlayedNetwork::current().run_others();
  ::pthread_mutex_lock(mutex);
  return 0;
}

namespace wherry::fuzz {
namespace {

PlayedNetwork* current_network = nullptr;

PlayedNetwork& network() { return PlayedNetwork::current(); }

}  // namespace

PlayedNetwork::PlayedNetwork() { current_network = this; }

PlayedNetwork::~PlayedNetwork() { current_network = nullptr; }

PlayedNetwork& PlayedNetwork::current() {
  if (current_network == nullptr) std::abort();
  return *current_network;
}

}  // namespace wherry::fuzz

namespace wherry::fabric::ofi {

using fuzz::network;

// A registration's key stands in place of the pointer to libfabric's object.
std::uint64_t Registration::key() const { return reinterpret_cast<std::uintptr_t>(region_); }
Registration::~Registration() { network().on_registration_ended(key()); }

Knock::Knock(Knock&& other) noexcept
    : listener_(other.listener_), info_(std::exchange(other.info_, nullptr)), token_(other.token_) {}
Knock::~Knock() = default;

struct SharedDomain {};
struct Domain::Listening {};

Domain::Domain() = default;
Domain::~Domain() = default;

Endpoint::Endpoint(Domain& domain, const SocketAddress& /*local*/, const SocketAddress& /*remote*/,
                   const Token& /*token*/, void* /*context*/)
    : fabric_(domain.fabric_), carries_words_(network().carries_words()) {}
Endpoint::Endpoint(Domain& domain, Knock /*knock*/, void* /*context*/)
    : fabric_(domain.fabric_), carries_words_(network().carries_words()) {}
Endpoint::~Endpoint() { network().on_endpoint_closed(); }
std::unique_ptr<Registration> Endpoint::expose(std::span<std::byte> memory) const {
  return std::make_unique<Registration>(reinterpret_cast<fid_mr*>(network().expose(memory)), 0);
}

Endpoint::Posted Endpoint::write(std::span<const std::byte> source, const RemotePlace& to,
                                 std::optional<std::uint64_t> data) {
  return network().write(source, to, data);
}
Endpoint::Posted Endpoint::read(std::span<std::byte> into, const RemotePlace& /*from*/) { return network().read(into); }
Endpoint::Posted Endpoint::send(const layout::LinkMessage& message) { return network().send(message); }
int Endpoint::poll(Handler& handler, int most) { return network().poll(handler, most); }
bool Endpoint::may_sleep() const { return true; }
std::optional<SocketAddress> Endpoint::peer() const { return std::nullopt; }

// A service without a thread: the fuzz target calls the links.
Service::Service() = default;
Service& Service::instance() {
  static Service& service = *new Service;
  return service;
}
void Service::watch(int descriptor, std::shared_ptr<Served> served) { watched_[descriptor] = std::move(served); }
void Service::unwatch(int descriptor) noexcept { watched_.erase(descriptor); }
void Service::leave_alone(int /*descriptor*/, Clock::time_point /*until*/) {}
void Service::report(int /*descriptor*/, bool /*on*/) const noexcept {}
void Service::resume(int /*descriptor*/) {}
void Service::nudge() noexcept {}

}  // namespace wherry::fabric::ofi
