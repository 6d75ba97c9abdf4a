// SPDX-License-Identifier: Apache-2.0
// wherry.FramedStream.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <array>
#include <cerrno>
#include <utility>

#include "bindings/python/array.hpp"
#include "bindings/python/connection.hpp"
#include "bindings/python/errors.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace wherry::python {
// A namespace of its own, because the sources of a folder may be compiled as one file, and stream.cc has the same
// names.
namespace framed_calls {
namespace {

using Direction = Connection::Direction;
using Seconds = std::optional<double>;

class Framed : public Connection {
 public:
  explicit Framed(ByteStream& stream) : Connection(framed(stream.take_over("FramedStream"))) {}

 private:
  static std::shared_ptr<HeldStream> framed(const std::shared_ptr<HeldStream>& held) {
    auto made = std::make_shared<HeldStream>();
    made->messages = FramedStream(std::move(held->bytes));
    return made;
  }
};

[[noreturn]] void raise_end() {
  PyErr_SetString(PyExc_EOFError, "the peer finished sending, and everything was received");
  throw nb::python_error();
}

/// Converts the result of a send. Empty: it would block.
std::optional<std::size_t> sent(const Framed& self, const Result& result, const char* operation) {
  if (result.failed()) self.fail(result, operation);
  if (result.would_block()) return {};
  return result.bytes;
}

std::size_t send_pieces(Framed& self, std::span<const iovec> pieces, const Deadline& deadline, const char* operation) {
  const Connection::Call call = self.begin(Direction::sending, deadline, operation);
  self.reserved.take_back();
  std::size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  Result result = Result::blocked();
  if (bytes <= kShortCopy) result = call.messages().try_send(pieces);
  if (result.would_block()) {
    result = in_slices(deadline, [&](std::chrono::nanoseconds slice) { return call.messages().send(pieces, slice); });
  }
  return sent(self, result, operation).value_or(0);
}

std::size_t send(Framed& self, nb::handle buffer, Seconds timeout) {
  const Deadline deadline(timeout);
  const Buffer data(buffer, Buffer::Use::read);
  const iovec piece{data.bytes().data(), data.bytes().size()};
  return send_pieces(self, std::span(&piece, 1), deadline, "send");
}

std::size_t send_array(Framed& self, nb::handle array, Seconds timeout) {
  const Deadline deadline(timeout);
  const auto type = type_of(array);
  if (!type) throw nb::type_error("send_array takes an ndarray");
  layout::ArrayHeader header = header_of(*type);
  const nb::object plain = without_dates(array, *type);
  const Buffer data(plain, Buffer::Use::read);
  const std::array pieces{iovec{&header, sizeof header}, iovec{data.bytes().data(), data.bytes().size()}};
  return send_pieces(self, pieces, deadline, "send_array");
}

std::optional<std::size_t> try_send(Framed& self, nb::handle buffer) {
  const Buffer data(buffer, Buffer::Use::read);
  const Connection::Call call = self.begin(Direction::sending, Deadline(0.0), "try_send");
  self.reserved.take_back();
  return sent(self, call.messages().try_send(std::span<const std::byte>(data.bytes())), "try_send");
}

nb::object reserve(Framed& self, std::size_t bytes) {
  const Connection::Call call = self.begin(Direction::sending, Deadline(0.0), "reserve");
  self.reserved.take_back();
  const std::span<std::byte> room = call.messages().reserve(bytes);
  if (room.data() == nullptr) return nb::none();
  return self.reserved.lend({.owner = call.held, .bytes = room, .writable = true});
}

std::size_t commit(Framed& self, std::size_t bytes) {
  const Connection::Call call = self.begin(Direction::sending, Deadline(0.0), "commit");
  self.reserved.take_back();
  return sent(self, call.messages().commit(bytes), "commit").value_or(0);
}

std::size_t wait_writable(Framed& self, std::size_t bytes, Seconds timeout) {
  const Deadline deadline(timeout);
  const Connection::Call call = self.begin(Direction::sending, deadline, "wait_writable");
  const Result result =
      in_slices(deadline, [&](std::chrono::nanoseconds slice) { return call.messages().wait_writable(bytes, slice); });
  return sent(self, result, "wait_writable").value_or(0);
}

// Receiving -----------------------------------------------------------------------------------------------------------

/// A received message, and the turn that keeps it valid.
struct Taking {
  Connection::Call call;
  Received received;
};

/// Receives a message; blocks if `may_block`. The caller handles would_block.
Taking take(Framed& self, const Deadline& deadline, bool may_block, const char* operation) {
  Taking taking{self.begin(Direction::receiving, deadline, operation), {}};
  self.received.take_back();
  FramedStream& messages = taking.call.messages();
  taking.received = messages.try_receive();
  if (taking.received.result.would_block() && may_block) {
    (void)in_slices(deadline, [&](std::chrono::nanoseconds slice) {
      taking.received = messages.receive(slice);
      return taking.received.result;
    });
  }
  if (taking.received.result.failed()) self.fail(taking.received.result, operation);
  if (taking.received.result.ended()) raise_end();
  return taking;
}

nb::object lent(Framed& self, const Taking& taking) {
  const std::span<const std::byte> message = taking.received.message;
  const std::span bytes(const_cast<std::byte*>(message.data()), message.size());
  return self.received.lend({.owner = taking.call.held, .bytes = bytes, .writable = false});
}

nb::object receive(Framed& self, Seconds timeout) { return lent(self, take(self, Deadline(timeout), true, "receive")); }

nb::object try_receive(Framed& self) {
  const Taking taking = take(self, Deadline(0.0), false, "try_receive");
  return taking.received.result.would_block() ? nb::none() : lent(self, taking);
}

nb::object receive_bytes(Framed& self, Seconds timeout) {
  const Taking taking = take(self, Deadline(timeout), true, "receive_bytes");
  const std::span<const std::byte> message = taking.received.message;
  return nb::bytes(message.data(), message.size());
}

nb::object receive_array(Framed& self, Seconds timeout) {
  const Taking taking = take(self, Deadline(timeout), true, "receive_array");
  const auto array = read_array(taking.received.message);
  if (!array || !array->type) self.fail(Result::failure(EPROTO), "receive_array");
  const std::span<const std::byte> elements = taking.received.message.subspan(array->offset, array->type->bytes());
  const nb::bytearray copy(elements.data(), elements.size());
  return array_over(copy, *array->type);
}

nb::object next(Framed& self) {
  try {
    return receive_bytes(self, {});
  } catch (nb::python_error& error) {
    if (error.matches(PyExc_EOFError)) throw nb::stop_iteration();
    throw;
  }
}

void bind_sending(nb::class_<Framed, Connection>& type) {
  type.def("send", &send, "buffer"_a, "timeout"_a = nb::none(),
           nb::sig("def send(self, buffer: Buffer, timeout: float | None = None) -> int"),
           "Blocks until the whole message was accepted, and returns its size. After an exception no part of it was "
           "sent.")
      .def("try_send", &try_send, "buffer"_a, nb::sig("def try_send(self, buffer: Buffer) -> int | None"),
           "Sends without blocking. None: no space for the message now.")
      .def(
          "send_array", &send_array, "array"_a, "timeout"_a = nb::none(),
          nb::sig("def send_array(self, array: numpy.typing.NDArray[typing.Any], timeout: float | None = None) -> int"),
          "Sends an ndarray, with a header that contains its dtype and shape.")
      .def("reserve", &reserve, "bytes"_a, nb::sig("def reserve(self, bytes: int) -> memoryview | None"),
           "Reserves space for a message in the peer's ring, to write into. None: no space now. Valid until the next "
           "call that sends.")
      .def("commit", &commit, "bytes"_a, "Sends the first bytes of the reserved space.")
      .def("wait_writable", &wait_writable, "bytes"_a, "timeout"_a = nb::none(),
           "Blocks until reserve(bytes) will succeed.")
      .def(
          "hold",
          [](Framed& self) { self.begin(Direction::sending, Deadline(std::nullopt), "hold").messages().hold(); },
          "Holds messages back until flush, to publish many small messages at once.")
      .def(
          "flush",
          [](Framed& self) {
            const Connection::Call call = self.begin(Direction::sending, Deadline(std::nullopt), "flush");
            (void)sent(self, call.messages().flush(), "flush");
          },
          "Publishes the held messages, and ends the holding.")
      .def_prop_ro(
          "max_send", [](Framed& self) { return self.held("max_send").messages.max_send(); },
          "The size of the largest message that can be sent, in bytes.");
}

}  // namespace
}  // namespace framed_calls

void bind_framed(nb::module_& module) {
  using namespace framed_calls;
  nb::class_<Framed, Connection> type(module, "FramedStream",
                                      "A stream of messages: one receive returns exactly what one send sent. Takes "
                                      "over a Stream, which is then closed. Iterating yields the messages as bytes.");
  type.def(nb::init<ByteStream&>(), "stream"_a)
      .def("receive", &receive, "timeout"_a = nb::none(),
           nb::sig("def receive(self, timeout: float | None = None) -> memoryview"),
           "Blocks until there is a message, and returns a view of it in place, valid until the next call that "
           "receives. That call raises BufferError while an array uses the view. Raises EOFError at the end.")
      .def("try_receive", &try_receive, nb::sig("def try_receive(self) -> memoryview | None"),
           "Receives without blocking. None: no message now.")
      .def("receive_bytes", &receive_bytes, "timeout"_a = nb::none(),
           nb::sig("def receive_bytes(self, timeout: float | None = None) -> bytes"), "As receive, but returns a copy.")
      .def("receive_array", &receive_array, "timeout"_a = nb::none(),
           nb::sig("def receive_array(self, timeout: float | None = None) -> numpy.typing.NDArray[typing.Any]"),
           "Receives a message of send_array, as a new array.")
      .def(
          "__iter__", [](nb::object self) { return self; }, nb::sig("def __iter__(self) -> typing.Self"))
      .def("__next__", &next, nb::sig("def __next__(self) -> bytes"))
      .def(
          "release",
          [](Framed& self) {
            auto held = self.take_over("release");
            return std::make_unique<ByteStream>(held->messages.release());
          },
          "Flushes, consumes the last message, and returns the stream.")
      .def_prop_ro("max_receive", [](Framed& self) { return self.held("max_receive").messages.max_receive(); });
  bind_sending(type);
}

}  // namespace wherry::python
