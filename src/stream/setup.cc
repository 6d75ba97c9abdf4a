// SPDX-License-Identifier: Apache-2.0
// Listening, connecting, and what the two sides of a stream tell each other before the first byte.
#include <poll.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/config.hpp"
#include "stream/impl.hpp"

namespace wherry {
namespace stream {
namespace {

/// Sleeps until `fd` is readable. False: the deadline passed.
bool wait_for(int fd, const fabric::Deadline& deadline) {
  while (true) {
    int timeout_ms = -1;
    if (deadline) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - SteadyClock::now()).count();
      timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, INT32_MAX));
    }
    pollfd polled{fd, POLLIN, 0};
    const int ready = ::poll(&polled, 1, timeout_ms);
    if (ready > 0) return true;
    if (ready == 0) return false;
  }
}

/// What a stream reads once it is connected must be valid before: an error then would cost both sides the connection.
void check_configuration() {
  for (const auto key : {config::Key::spin, config::Key::statistics, config::Key::connect_timeout}) config::check(key);
}

/// The capacity of the peer's ring, or 0 if it cannot be one.
std::size_t capacity_in(const fabric::Greeting& bytes, std::size_t segment_bytes) {
  layout::StreamGreeting greeting{};
  std::memcpy(&greeting, bytes.data(), sizeof greeting);
  const bool good = greeting.magic == layout::kStreamMagic && greeting.version == layout::kStreamVersion &&
                    std::has_single_bit(greeting.capacity) && greeting.capacity >= ring::kMinCapacity &&
                    greeting.capacity <= ring::kMaxCapacity &&
                    greeting.capacity + layout::kStreamPageBytes <= segment_bytes;
  return good ? greeting.capacity : 0;
}

}  // namespace

std::size_t own_capacity(const StreamOptions& options) {
  return ring::round_capacity(options.ring_bytes != 0
                                  ? options.ring_bytes
                                  : config::number(config::Key::ring, ring::kMinCapacity, ring::kMaxCapacity));
}

fabric::Offer offer_of(std::size_t capacity) {
  const layout::StreamGreeting greeting{
      .magic = layout::kStreamMagic, .version = layout::kStreamVersion, .capacity = capacity, .reserved = {}};
  fabric::Offer offer{.segment_bytes = layout::kStreamPageBytes + capacity, .memory = nullptr, .greeting = {}};
  static_assert(sizeof greeting == sizeof offer.greeting);
  std::memcpy(offer.greeting.data(), &greeting, sizeof greeting);
  return offer;
}

Stream make_stream(std::unique_ptr<fabric::Connection> connection, Address local, std::size_t capacity,
                   std::string_view fabric) {
  const std::size_t peers = capacity_in(connection->peer_greeting(), connection->remote_bytes());
  if (peers == 0) {
    throw Error(EPROTO, "open a stream with", connection->peer().address.to_string(),
                "the peer is no stream of this version of Wherry; use one version on both sides");
  }
  auto* page = reinterpret_cast<layout::StreamPage*>(connection->segment().data());
  page->version = layout::kStreamVersion;
  page->capacity = capacity;
  return Stream(std::make_unique<Stream::Impl>(std::move(connection), std::move(local), peers, capacity, fabric));
}

fabric::Deadline deadline_of(const Timeout& timeout) {
  if (!timeout) return {};
  const auto now = SteadyClock::now();
  if (*timeout >= SteadyClock::time_point::max() - now) return {};  // for ever, as good as
  return now + std::max(*timeout, Timeout::value_type::zero());
}

}  // namespace stream

class Listener::Impl {
 public:
  Impl(fabric::Fabric& fabric, const Address& address, std::size_t capacity)
      : fabric_(fabric), listener_(fabric.listen(address)), capacity_(capacity) {
    statistics::Endpoint endpoint;
    endpoint.kind = layout::EndpointKind::listener;
    endpoint.local = listener_->local();
    endpoint.receive_capacity = capacity;
    endpoint.fabric = fabric.name();
    counters_ = statistics::open_endpoint(endpoint);
  }

  std::optional<Stream> try_accept() {
    while (auto connection = listener_->try_accept(stream::offer_of(capacity_))) {
      try {
        Stream stream = stream::make_stream(std::move(connection), listener_->local(), capacity_, fabric_.name());
        statistics::bump(counters_->receives);
        return stream;
      } catch (const Error& error) {
        if (error.code().value() != EPROTO)
          throw;  // A connector that speaks something else is dropped; the next may be good.
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] const fabric::Listener& fabric_listener() const { return *listener_; }

 private:
  fabric::Fabric& fabric_;
  std::unique_ptr<fabric::Listener> listener_;
  std::size_t capacity_;
  statistics::Slot counters_;
};

Listener::Listener(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Listener::Listener(Listener&&) noexcept = default;
Listener& Listener::operator=(Listener&&) noexcept = default;
Listener::~Listener() = default;

std::optional<Stream> Listener::try_accept() { return impl_->try_accept(); }
int Listener::descriptor() const noexcept { return impl_->fabric_listener().descriptor(); }
const Address& Listener::local() const noexcept { return impl_->fabric_listener().local(); }

Stream Listener::accept(Timeout timeout) {
  const fabric::Deadline deadline = stream::deadline_of(timeout);
  while (true) {
    if (auto stream = try_accept()) return std::move(*stream);
    if (stream::has_passed(deadline) || !stream::wait_for(descriptor(), deadline)) {
      throw Error(ETIMEDOUT, "accept on", local().to_string(), "nobody connected in time");
    }
  }
}

class Connecting::Impl {
 public:
  Impl(fabric::Fabric& fabric, Address address, std::size_t capacity)
      : fabric_(fabric),
        address_(std::move(address)),
        capacity_(capacity),
        connecting_(fabric.connect(address_, stream::offer_of(capacity))) {}

  std::optional<Stream> try_finish() {
    auto connection = connecting_->try_finish();
    if (connection == nullptr) return std::nullopt;
    Address local{.fabric = address_.fabric, .node = own_node(), .port = {}};
    return stream::make_stream(std::move(connection), std::move(local), capacity_, fabric_.name());
  }

  [[nodiscard]] int descriptor() const { return connecting_->descriptor(); }

 private:
  fabric::Fabric& fabric_;
  Address address_;
  std::size_t capacity_;
  std::unique_ptr<fabric::Connecting> connecting_;
};

Connecting::Connecting(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Connecting::Connecting(Connecting&&) noexcept = default;
Connecting& Connecting::operator=(Connecting&&) noexcept = default;
Connecting::~Connecting() = default;

std::optional<Stream> Connecting::try_finish() { return impl_->try_finish(); }
int Connecting::descriptor() const noexcept { return impl_->descriptor(); }

Listener listen(std::string_view text, StreamOptions options) {
  stream::check_configuration();
  const Address address = Address::parse(text);
  return Listener(std::make_unique<Listener::Impl>(fabric::find(address), address, stream::own_capacity(options)));
}

Connecting start_connect(std::string_view text, StreamOptions options) {
  stream::check_configuration();
  Address address = Address::parse(text);
  fabric::Fabric& fabric = fabric::find(address);
  return Connecting(std::make_unique<Connecting::Impl>(fabric, std::move(address), stream::own_capacity(options)));
}

Stream connect(std::string_view text, StreamOptions options, Timeout timeout) {
  if (!timeout) timeout = std::chrono::milliseconds(config::number(config::Key::connect_timeout));
  const fabric::Deadline deadline = stream::deadline_of(timeout);
  Connecting connecting = start_connect(text, options);
  while (true) {
    if (auto stream = connecting.try_finish()) return std::move(*stream);
    if (stream::has_passed(deadline) || !stream::wait_for(connecting.descriptor(), deadline)) {
      throw Error(ETIMEDOUT, "connect to", std::string(text),
                  "somebody listens there but did not accept in time; wait longer (WHERRY_CONNECT_TIMEOUT)");
    }
  }
}

}  // namespace wherry
