// SPDX-License-Identifier: Apache-2.0
// Listening and connecting, over the fabric that the address names.
#include <bit>
#include <cerrno>
#include <string>

#include "arch/shared_copy.hpp"
#include "base/config.hpp"
#include "base/log.hpp"
#include "fabric/retrying_connect.hpp"
#include "fabric/wait_for_events.hpp"
#include "ring/ring.hpp"
#include "stream/handshake.hpp"
#include "stream/statistics.hpp"
#include "stream/waiter.hpp"

namespace wherry {
namespace stream {
namespace {

/// Checks settings that a stream reads once it is connected: an error then would cost both sides the connection.
void check_configuration() {
  for (const auto key : {config::Key::spin, config::Key::statistics, config::Key::connect_timeout, config::Key::split})
    config::check(key);
  // Chosen here, not by the first copy, which may run in a forked child or in a signal handler.
  (void)arch::shared_copy();
}

/// The capacity of this side's ring: from the options, else from the configuration, rounded.
Rings rings_of(const StreamOptions& options) {
  const auto configured = [](config::Key key) { return config::number(key, ring::kMinCapacity, ring::kMaxCapacity); };
  const std::size_t own = options.ring_bytes != 0 ? options.ring_bytes : configured(config::Key::ring);
  return {.own = ring::round_capacity(own),
          .peers = std::bit_floor(configured(config::Key::peer_ring)),
          .windows = options.windows};
}

}  // namespace
}  // namespace stream

class Listener::Impl {
 public:
  Impl(fabric::Fabric& fabric, const Address& address, const stream::Rings& rings)
      : fabric_(fabric), listener_(fabric.listen(address)), rings_(rings) {
    statistics::Endpoint endpoint;
    endpoint.kind = layout::EndpointKind::listener;
    endpoint.local = listener_->local();
    endpoint.receive_capacity = rings.own;
    endpoint.fabric = fabric.name();
    counters_ = statistics::open_endpoint(endpoint);
  }

  std::optional<Stream> try_accept() {
    auto connection = listener_->try_accept(stream::offer_of(rings_));
    if (connection == nullptr) return std::nullopt;
    try {
      const std::string_view fabric = fabric_.name_of(*connection);
      Stream stream = stream::make_stream(std::move(connection), listener_->local(), rings_, fabric);
      statistics::bump(counters_->receives);
      return stream;
    } catch (const Error& error) {
      // A peer that is no stream is dropped. The next may be one; but there may be many, and the descriptor stays
      // readable for them.
      if (error.code().value() != EPROTO) throw;
      log::write(log::Level::info, std::string("dropped a connector: ") + error.what());
      return std::nullopt;
    }
  }

  [[nodiscard]] const fabric::Listener& fabric_listener() const { return *listener_; }

 private:
  fabric::Fabric& fabric_;
  std::unique_ptr<fabric::Listener> listener_;
  stream::Rings rings_;
  statistics::Record counters_;
};

namespace {

const Address kNowhere{};

/// Returns what a handle holds. Throws Error(EBADF) if it is empty.
template <class Impl>
Impl& held(const std::unique_ptr<Impl>& impl, const char* operation, const char* advice) {
  if (impl == nullptr) throw Error(EBADF, operation, "", advice);
  return *impl;
}

}  // namespace

Listener::Listener() noexcept = default;
Listener::Listener(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Listener::Listener(Listener&&) noexcept = default;
Listener& Listener::operator=(Listener&&) noexcept = default;
Listener::~Listener() = default;

std::optional<Stream> Listener::try_accept() {
  return held(impl_, "accept", "this Listener holds no port: assign it what wherry::listen returns").try_accept();
}
int Listener::descriptor() const noexcept { return impl_ ? impl_->fabric_listener().descriptor() : -1; }
const Address& Listener::local() const noexcept { return impl_ ? impl_->fabric_listener().local() : kNowhere; }

Stream Listener::accept(Timeout timeout) {
  const fabric::Deadline deadline = stream::deadline_of(timeout);
  while (true) {
    if (auto stream = try_accept()) return std::move(*stream);
    if (stream::has_passed(deadline) || !fabric::wait_until_readable(descriptor(), deadline)) {
      throw Error(ETIMEDOUT, "accept on", local().to_string(), "nobody connected in time");
    }
  }
}

namespace stream {
namespace {

/// Target of a connect: the address, its fabric, and the rings to offer.
class Target {
 public:
  Target(std::string_view text, const StreamOptions& options)
      : address_(Address::parse(text)), fabric_(fabric::find(address_)), rings_(rings_of(options)) {}

  [[nodiscard]] std::unique_ptr<fabric::Connecting> start(const fabric::Deadline& until) const {
    return fabric::start_connect(fabric_, address_, offer_of(rings_), {.nobody_listens = until, .queue_full = until});
  }
  [[nodiscard]] Stream finish(fabric::Connecting& attempt, const fabric::Deadline& deadline) const {
    return stream_on(fabric::finish(attempt, address_, deadline));
  }
  [[nodiscard]] Stream stream_on(std::unique_ptr<fabric::Connection> connection) const {
    Address local{.fabric = address_.fabric, .node = own_node(), .port = {}};
    const std::string_view fabric = fabric_.name_of(*connection);
    return make_stream(std::move(connection), std::move(local), rings_, fabric);
  }

 private:
  Address address_;
  fabric::Fabric& fabric_;
  Rings rings_;
};

}  // namespace
}  // namespace stream

class Connecting::Impl {
 public:
  Impl(const stream::Target& target, const fabric::Deadline& until) : target_(target), attempt_(target_.start(until)) {}

  std::optional<Stream> try_finish() {
    auto connection = attempt_->try_finish();
    if (connection == nullptr) return std::nullopt;
    return target_.stream_on(std::move(connection));
  }

  Stream finish(const fabric::Deadline& deadline) { return target_.finish(*attempt_, deadline); }

  [[nodiscard]] int descriptor() const { return attempt_->descriptor(); }

 private:
  stream::Target target_;
  std::unique_ptr<fabric::Connecting> attempt_;
};

Connecting::Connecting() noexcept = default;
Connecting::Connecting(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Connecting::Connecting(Connecting&&) noexcept = default;
Connecting& Connecting::operator=(Connecting&&) noexcept = default;
Connecting::~Connecting() = default;

namespace {

constexpr const char* kNoAttempt = "this Connecting holds no attempt: assign it what wherry::start_connect returns";

}  // namespace

std::optional<Stream> Connecting::try_finish() { return held(impl_, "connect", kNoAttempt).try_finish(); }
Stream Connecting::finish(Timeout timeout) {
  return held(impl_, "connect", kNoAttempt).finish(stream::connect_deadline(timeout));
}
int Connecting::descriptor() const noexcept { return impl_ ? impl_->descriptor() : -1; }

Listener listen(std::string_view text, StreamOptions options) {
  stream::check_configuration();
  const Address address = Address::parse(text);
  return Listener(std::make_unique<Listener::Impl>(fabric::find(address), address, stream::rings_of(options)));
}

Connecting start_connect(std::string_view address, StreamOptions options, Timeout wait) {
  stream::check_configuration();
  return Connecting(
      std::make_unique<Connecting::Impl>(stream::Target(address, options), stream::connect_deadline(wait)));
}

Stream connect(std::string_view address, StreamOptions options, Timeout timeout) {
  stream::check_configuration();
  const fabric::Deadline deadline = stream::connect_deadline(timeout);
  return Connecting::Impl(stream::Target(address, options), deadline).finish(deadline);
}

}  // namespace wherry
