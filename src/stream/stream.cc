// SPDX-License-Identifier: Apache-2.0
// The public handle: checks that the stream is open, and turns one buffer into a list of one.
#include <wherry/stream.hpp>

#include <cerrno>

#include "base/log.hpp"
#include "base/not_cancelled.hpp"
#include "stream/impl.hpp"

namespace wherry {
namespace {

const Address kNoAddress{};
const Peer kNoPeer{};

statistics::Record open_counters(const fabric::Connection& connection, const Address& local, std::size_t send_capacity,
                                 std::size_t receive_capacity, std::string_view fabric) {
  statistics::Endpoint endpoint;
  endpoint.kind = layout::EndpointKind::stream;
  endpoint.local = local;
  endpoint.peer = connection.peer().address;
  endpoint.peer_pid = connection.peer().pid;
  endpoint.peer_host = connection.peer().host;
  endpoint.send_capacity = send_capacity;
  endpoint.receive_capacity = receive_capacity;
  endpoint.fabric = fabric;
  return statistics::open_endpoint(endpoint);
}

}  // namespace

Stream::Impl::Impl(std::unique_ptr<fabric::Connection> established, Address own_address, std::size_t peers_capacity,
                   std::size_t own_capacity, std::string_view fabric)
    : connection(std::move(established)),
      local(std::move(own_address)),
      counters(open_counters(*connection, local, peers_capacity, own_capacity, fabric)),
      sender(*connection, peers_capacity, connection_state, *counters),
      receiver(*connection, own_capacity, connection_state, *counters) {}

/// Destroys the connection before the two directions: until then a pending put reads the sender's staging ring.
Stream::Impl::~Impl() {
  if (stream::Watcher* watcher = receiver.watcher(); watcher != nullptr) watcher->leaving();
  windows.reset();
  connection.reset();
}

Stream::Stream() noexcept = default;
Stream::Stream(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    close();
    impl_ = std::move(other.impl_);
  }
  return *this;
}
Stream::~Stream() { close(); }

// Most small messages end in the first line of these functions. Neither a Timeout nor a Result goes over the stack
// there: gcc writes one byte of it and then reads eight, and that store-forwarding stall takes longer than a message of
// 64 bytes.

Result Stream::send(std::span<const std::byte> bytes) noexcept {
  if (impl_ && impl_->sender.send_at_once(bytes)) return Result::moved(bytes.size());
  const iovec buffer = buffer_of(bytes);
  return send(std::span(&buffer, 1), Timeout());
}

Result Stream::send(std::span<const std::byte> bytes, Timeout timeout) noexcept {
  if (impl_ && impl_->sender.send_at_once(bytes)) return Result::moved(bytes.size());
  const iovec buffer = buffer_of(bytes);
  return send(std::span(&buffer, 1), timeout);
}

Result Stream::send(std::span<const iovec> buffers, Timeout timeout) noexcept {
  return impl_ ? impl_->sender.send(buffers, stream::deadline_of(timeout)) : kClosed;
}

Result Stream::receive(std::span<std::byte> bytes) noexcept {
  if (impl_ && impl_->receiver.receive_at_once(bytes)) return Result::moved(bytes.size());
  const iovec buffer = buffer_of(bytes);
  return receive(std::span(&buffer, 1), Timeout());
}

Result Stream::receive(std::span<std::byte> bytes, Timeout timeout) noexcept {
  if (impl_ && impl_->receiver.receive_at_once(bytes)) return Result::moved(bytes.size());
  const iovec buffer = buffer_of(bytes);
  return receive(std::span(&buffer, 1), timeout);
}

Result Stream::receive(std::span<const iovec> buffers, Timeout timeout) noexcept {
  return impl_ ? impl_->receiver.receive(buffers, stream::deadline_of(timeout)) : kClosed;
}

Result Stream::receive_all(std::span<std::byte> bytes) noexcept {
  if (impl_ && impl_->receiver.receive_at_once(bytes)) return Result::moved(bytes.size());
  return impl_ ? impl_->receiver.receive_all(bytes, {}) : kClosed;
}

Result Stream::receive_all(std::span<std::byte> bytes, Timeout timeout) noexcept {
  if (impl_ && impl_->receiver.receive_at_once(bytes)) return Result::moved(bytes.size());
  return impl_ ? impl_->receiver.receive_all(bytes, stream::deadline_of(timeout)) : kClosed;
}

Result Stream::try_send(std::span<const std::byte> bytes) noexcept {
  const iovec buffer = buffer_of(bytes);
  return try_send(std::span(&buffer, 1));
}

Result Stream::try_send(std::span<const iovec> buffers) noexcept {
  return impl_ ? impl_->sender.try_send(buffers) : kClosed;
}

Result Stream::try_receive(std::span<std::byte> bytes) noexcept {
  const iovec buffer = buffer_of(bytes);
  return try_receive(std::span(&buffer, 1));
}

Result Stream::try_receive(std::span<const iovec> buffers) noexcept {
  return impl_ ? impl_->receiver.try_receive(buffers) : kClosed;
}

Regions Stream::reserve(std::size_t want) noexcept { return impl_ ? impl_->sender.reserve(want) : Regions{}; }
Result Stream::commit(std::size_t bytes) noexcept { return impl_ ? impl_->sender.commit(bytes) : kClosed; }
ConstRegions Stream::peek(std::size_t want) noexcept { return impl_ ? impl_->receiver.peek(want) : ConstRegions{}; }
Result Stream::consume(std::size_t bytes) noexcept { return impl_ ? impl_->receiver.consume(bytes) : kClosed; }

Result Stream::wait_readable(Timeout timeout) noexcept {
  return impl_ ? impl_->receiver.wait_readable(stream::deadline_of(timeout)) : kClosed;
}

Result Stream::try_readable() noexcept { return impl_ ? impl_->receiver.try_readable() : kClosed; }

Result Stream::wait_writable(std::size_t bytes, Timeout timeout) noexcept {
  return impl_ ? impl_->sender.wait_writable(bytes, stream::deadline_of(timeout)) : kClosed;
}

int Stream::receive_descriptor() { return impl_ ? impl_->receiver.descriptor() : -1; }
int Stream::send_descriptor() { return impl_ ? impl_->sender.descriptor() : -1; }
int Stream::receive_event_descriptor() { return impl_ ? impl_->receiver.event_descriptor() : -1; }
int Stream::send_event_descriptor() { return impl_ ? impl_->sender.event_descriptor() : -1; }

void Stream::raise_send_descriptor() noexcept {
  if (impl_) impl_->sender.raise_descriptor();
}

Result Stream::limit_unread(std::size_t bytes) noexcept { return impl_ ? impl_->sender.limit_unread(bytes) : kClosed; }
Result Stream::finish_sending() noexcept { return impl_ ? impl_->sender.finish() : kClosed; }

void Stream::close() noexcept {
  if (close(fabric::kCloseTimeout).error != ETIMEDOUT) return;
  log::write(log::Level::warning,
             "close stream: the peer has not acknowledged all bytes within 10 s and may lose some; check whether its "
             "process is stopped, or close with a longer timeout");
}

Result Stream::close(Timeout timeout) noexcept {
  if (!impl_) return kClosed;
  const NotCancelled here;
  Result flushed = Result::moved(0);
  // In a forked child the stream belongs to the parent, and only the parent may end it.
  if (!impl_->origin.inherited()) {
    (void)impl_->sender.finish();  // fails only if the peer is gone or the stream was cancelled; neither needs an end
    impl_->receiver.close();
    const fabric::Deadline deadline = stream::deadline_of(timeout);
    flushed = impl_->windows ? impl_->windows->close(deadline) : impl_->connection->flush(deadline);
    // A peer that has read everything may be gone before this side asks.
    if (!impl_->windows && impl_->sender.is_all_read()) flushed = Result::moved(0);
  }
  impl_.reset();
  return flushed;
}

Windows Stream::windows() {
  if (!impl_) throw Error(EBADF, "open the windows of a stream", "", "the stream is closed");
  if (!impl_->windows) {
    throw Error(ENOTSUP, "open the windows of a stream with", peer().address.to_string(),
                "both sides must ask for them when they listen and connect (StreamOptions::windows)");
  }
  return Windows(*impl_->windows);
}

void Stream::cancel() noexcept {
  if (!impl_) return;
  // outside: the flag carries all the information; the bells only wake sleeping threads to read it.
  impl_->connection_state.cancelled.store(true, std::memory_order_release);
  for (const fabric::Bell bell : fabric::kBells) impl_->connection->notify_self(bell);
}

const Address& Stream::local() const noexcept { return impl_ ? impl_->local : kNoAddress; }
const Peer& Stream::peer() const noexcept { return impl_ ? impl_->connection->peer() : kNoPeer; }
std::size_t Stream::receive_capacity() const noexcept { return impl_ ? impl_->receiver.capacity() : 0; }
std::size_t Stream::send_capacity() const noexcept { return impl_ ? impl_->sender.capacity() : 0; }

StreamCounters Stream::counters() const noexcept {
  if (!impl_) return {};
  const layout::StatisticsRecord& record = *impl_->counters;
  const auto value = [](const layout::Counter& counter) { return counter.load(std::memory_order_relaxed); };
  return {.bytes_sent = value(record.bytes_sent),
          .bytes_received = value(record.bytes_received),
          .bytes_sent_split = value(record.bytes_sent_split),
          .bytes_received_split = value(record.bytes_received_split),
          .sends = value(record.sends),
          .receives = value(record.receives),
          .send_sleeps = value(record.send_sleeps),
          .receive_sleeps = value(record.receive_sleeps),
          .wakes = value(record.data_wakes) + value(record.space_wakes)};
}

}  // namespace wherry
