// SPDX-License-Identifier: Apache-2.0
// The public handle of a stream of messages: checks that it is open, and turns one buffer into a list of one.
#include <wherry/framed.hpp>

#include <cerrno>

#include "stream/frame_reader.hpp"
#include "stream/frame_writer.hpp"
#include "stream/impl.hpp"

namespace wherry {
/// Each direction has cache lines of its own: two threads may use them.
class FramedStream::Impl {
 public:
  Impl(Stream from, Stream::Impl& within)
      : stream(std::move(from)), origin(within.origin), writer(within.sender), reader(within.receiver) {}

  /// Publishes held messages. A forked child's copy sends nothing: the stream belongs to the parent.
  Result send_collected() noexcept {
    return writer.has_collected() && !origin.inherited() ? writer.flush() : Result::moved(0);
  }

  Stream stream;
  const Origin origin;  ///< the stream's
  alignas(64) stream::FrameWriter writer;
  alignas(64) stream::FrameReader reader;
};

FramedStream::FramedStream() noexcept = default;
FramedStream::FramedStream(FramedStream&&) noexcept = default;
FramedStream::~FramedStream() { close(); }

FramedStream::FramedStream(Stream stream) {
  if (!stream.is_open()) throw Error(EBADF, "send messages on a stream", "", "the stream is closed");
  Stream::Impl& within = *stream.impl_;
  impl_ = std::make_unique<Impl>(std::move(stream), within);
}

FramedStream& FramedStream::operator=(FramedStream&& other) noexcept {
  if (this != &other) {
    close();
    impl_ = std::move(other.impl_);
  }
  return *this;
}

bool FramedStream::is_open() const noexcept { return impl_ && impl_->stream.is_open(); }
Stream& FramedStream::stream() noexcept { return impl_->stream; }

Stream FramedStream::release() noexcept {
  if (!is_open()) return {};
  // A forked child must not repeat either: the parent does both.
  if (!impl_->origin.inherited()) {
    (void)impl_->reader.consume_shown();
    (void)impl_->writer.flush();  // An error is reported by the next send.
  }
  Stream stream = std::move(impl_->stream);
  impl_.reset();
  return stream;
}

void FramedStream::close() noexcept {
  if (!is_open()) return impl_.reset();
  send_collected();
  impl_.reset();
}

Result FramedStream::close(Timeout timeout) noexcept {
  if (!is_open()) return kClosed;
  const Result sent = impl_->send_collected();
  const Result closed = impl_->stream.close(timeout);
  impl_.reset();
  return sent.failed() ? sent : closed;
}

void FramedStream::send_collected() noexcept { (void)impl_->send_collected(); }

Result FramedStream::send(std::span<const std::byte> message, Timeout timeout) noexcept {
  const iovec piece = buffer_of(message);
  return send(std::span(&piece, 1), timeout);
}

Result FramedStream::send(std::span<const iovec> pieces, Timeout timeout) noexcept {
  return is_open() ? impl_->writer.send(pieces, stream::deadline_of(timeout)) : kClosed;
}

Result FramedStream::try_send(std::span<const std::byte> message) noexcept {
  const iovec piece = buffer_of(message);
  return try_send(std::span(&piece, 1));
}

Result FramedStream::try_send(std::span<const iovec> pieces) noexcept {
  return is_open() ? impl_->writer.try_send(pieces) : kClosed;
}

std::span<std::byte> FramedStream::reserve(std::size_t bytes) noexcept {
  return is_open() ? impl_->writer.reserve(bytes) : std::span<std::byte>{};
}

Result FramedStream::commit(std::size_t bytes) noexcept { return is_open() ? impl_->writer.commit(bytes) : kClosed; }

Result FramedStream::wait_writable(std::size_t bytes, Timeout timeout) noexcept {
  return is_open() ? impl_->writer.wait_writable(bytes, stream::deadline_of(timeout)) : kClosed;
}

void FramedStream::hold() noexcept {
  if (is_open()) impl_->writer.hold();
}

Result FramedStream::flush() noexcept { return is_open() ? impl_->writer.flush() : kClosed; }

Received FramedStream::receive(Timeout timeout) noexcept {
  Received received{kClosed, {}};
  if (is_open()) received.result = impl_->reader.receive(received.message, stream::deadline_of(timeout));
  return received;
}

Received FramedStream::try_receive() noexcept {
  Received received{kClosed, {}};
  if (is_open()) received.result = impl_->reader.try_receive(received.message);
  return received;
}

std::size_t FramedStream::max_send() const noexcept { return is_open() ? impl_->writer.max_message() : 0; }
std::size_t FramedStream::max_receive() const noexcept { return is_open() ? impl_->reader.max_message() : 0; }

}  // namespace wherry
