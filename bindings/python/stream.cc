// SPDX-License-Identifier: Apache-2.0
// wherry.Stream.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <utility>

#include "bindings/python/connection.hpp"
#include "bindings/python/errors.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace wherry::python {
// A namespace of its own, because the sources of a folder may be compiled as one file, and framed.cc has the same
// names.
namespace stream_calls {
namespace {

using Direction = Connection::Direction;
using Seconds = std::optional<double>;

std::size_t send(ByteStream& self, nb::handle buffer, Seconds timeout) {
  const Deadline deadline(timeout);
  const Buffer data(buffer, Buffer::Use::read);
  const Connection::Call call = self.begin(Direction::sending, deadline, "send");
  const std::span<const std::byte> bytes = data.bytes();
  self.reserved.take_back();
  std::size_t sent = 0;
  Result result;
  if (bytes.size() <= kShortCopy) {
    result = call.stream().try_send(bytes);
    sent = result.bytes;
  }
  if (!result.failed() && sent < bytes.size()) {
    result = in_slices(deadline, [&](std::chrono::nanoseconds slice) {
      const Result part = call.stream().send(bytes.subspan(sent), slice);
      sent += part.bytes;
      return part;
    });
  }
  if (result.failed()) self.fail(Result::failure(result.error, sent), "send");
  return sent;
}

std::optional<std::size_t> try_send(ByteStream& self, nb::handle buffer) {
  const Buffer data(buffer, Buffer::Use::read);
  const Connection::Call call = self.begin(Direction::sending, Deadline(0.0), "try_send");
  self.reserved.take_back();
  const std::span<const std::byte> bytes = data.bytes();
  const Result result = call.stream().try_send(bytes);
  if (result.failed()) self.fail(result, "try_send");
  if (result.would_block()) return {};
  return result.bytes;
}

/// Receives into memory. Returns the number of bytes, 0 at the end.
std::size_t receive_to(ByteStream& self, std::span<std::byte> to, const Deadline& deadline, const char* operation) {
  const Connection::Call call = self.begin(Direction::receiving, deadline, operation);
  self.received.take_back();
  Result result = Result::blocked();
  if (to.size() <= kShortCopy) result = call.stream().try_receive(to);
  if (result.would_block()) {
    result = in_slices(deadline, [&](std::chrono::nanoseconds slice) { return call.stream().receive(to, slice); });
  }
  if (result.failed()) self.fail(result, operation);
  return result.bytes;
}

std::size_t receive_into(ByteStream& self, nb::handle buffer, Seconds timeout) {
  const Buffer place(buffer, Buffer::Use::write);
  return receive_to(self, place.bytes(), Deadline(timeout), "receive_into");
}

/// Makes a bytes object of the bytes that `fill` writes into its memory.
template <class Fill>
nb::object bytes_filled(std::size_t size, Fill fill) {
  PyObject* raw = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
  nb::object owner = nb::steal(raw);
  if (!owner.is_valid()) throw nb::python_error();
  const std::size_t filled = fill(std::span(reinterpret_cast<std::byte*>(PyBytes_AsString(raw)), size));
  if (filled == size) return owner;
  raw = owner.release().ptr();
  if (_PyBytes_Resize(&raw, static_cast<Py_ssize_t>(filled)) != 0) throw nb::python_error();
  return nb::steal(raw);
}

nb::object receive(ByteStream& self, std::size_t size, Seconds timeout) {
  const Deadline deadline(timeout);
  return bytes_filled(size, [&](std::span<std::byte> to) { return receive_to(self, to, deadline, "receive"); });
}

nb::object try_receive(ByteStream& self, std::size_t size) {
  Result result;
  nb::object bytes = bytes_filled(size, [&](std::span<std::byte> to) {
    const Connection::Call call = self.begin(Direction::receiving, Deadline(0.0), "try_receive");
    self.received.take_back();
    result = call.stream().try_receive(to);
    return result.bytes;
  });
  if (result.failed()) self.fail(result, "try_receive");
  return result.would_block() ? nb::none() : std::move(bytes);
}

std::size_t receive_all(ByteStream& self, nb::handle buffer, Seconds timeout) {
  const Deadline deadline(timeout);
  const Buffer place(buffer, Buffer::Use::write);
  const Connection::Call call = self.begin(Direction::receiving, deadline, "receive_all");
  self.received.take_back();
  std::size_t received = 0;
  const Result result = in_slices(deadline, [&](std::chrono::nanoseconds slice) {
    const Result part = call.stream().receive_all(place.bytes().subspan(received), slice);
    received += part.bytes;
    return part;
  });
  if (result.failed()) self.fail(Result::failure(result.error, received), "receive_all");
  return received;
}

// In place ------------------------------------------------------------------------------------------------------------

template <class Byte>
nb::list views_of(LentViews& views, const std::shared_ptr<HeldStream>& held, const BasicRegions<Byte>& regions,
                  bool writable) {
  nb::list all;
  for (const auto& region : {regions.first, regions.second}) {
    if (region.empty()) continue;
    const std::span bytes(const_cast<std::byte*>(region.data()), region.size());
    all.append(views.lend({.owner = held, .bytes = bytes, .writable = writable}));
  }
  return all;
}

nb::list peek(ByteStream& self, std::optional<std::size_t> want) {
  const Connection::Call call = self.begin(Direction::receiving, Deadline(0.0), "peek");
  self.received.take_back();
  return views_of(self.received, call.held, call.stream().peek(want.value_or(SIZE_MAX)), false);
}

void consume(ByteStream& self, std::size_t bytes) {
  const Connection::Call call = self.begin(Direction::receiving, Deadline(0.0), "consume");
  self.received.take_back();
  const Result result = call.stream().consume(bytes);
  if (result.failed()) self.fail(result, "consume");
}

nb::list reserve(ByteStream& self, std::size_t want) {
  const Connection::Call call = self.begin(Direction::sending, Deadline(0.0), "reserve");
  self.reserved.take_back();
  return views_of(self.reserved, call.held, call.stream().reserve(want), true);
}

std::size_t commit(ByteStream& self, std::size_t bytes) {
  const Connection::Call call = self.begin(Direction::sending, Deadline(0.0), "commit");
  self.reserved.take_back();
  const Result result = call.stream().commit(bytes);
  if (result.failed()) self.fail(result, "commit");
  return result.bytes;
}

std::size_t wait_readable(ByteStream& self, Seconds timeout) {
  const Deadline deadline(timeout);
  const Connection::Call call = self.begin(Direction::receiving, deadline, "wait_readable");
  const Result result =
      in_slices(deadline, [&](std::chrono::nanoseconds slice) { return call.stream().wait_readable(slice); });
  if (result.failed()) self.fail(result, "wait_readable");
  return result.bytes;
}

std::size_t wait_writable(ByteStream& self, std::size_t bytes, Seconds timeout) {
  const Deadline deadline(timeout);
  const Connection::Call call = self.begin(Direction::sending, deadline, "wait_writable");
  const Result result =
      in_slices(deadline, [&](std::chrono::nanoseconds slice) { return call.stream().wait_writable(bytes, slice); });
  if (result.failed()) self.fail(result, "wait_writable");
  return result.bytes;
}

void limit_unread(ByteStream& self, std::size_t bytes) {
  const Connection::Call call = self.begin(Direction::sending, Deadline(0.0), "limit_unread");
  const Result result = call.stream().limit_unread(bytes);
  if (result.failed()) self.fail(result, "limit_unread");
}

void bind_in_place(nb::class_<ByteStream, Connection>& type) {
  type.def("peek", &peek, "want"_a = nb::none(), nb::sig("def peek(self, want: int | None = None) -> list[memoryview]"),
           "The bytes that have arrived, in place, as views: none, one, or two where the ring wraps. Never blocks. The "
           "views are valid until the next call that receives, which raises BufferError while an array uses one of "
           "them.")
      .def("consume", &consume, "bytes"_a,
           "Consumes the first bytes of those that peek showed: the sender gets them back as credit.")
      .def("reserve", &reserve, "want"_a, nb::sig("def reserve(self, want: int) -> list[memoryview]"),
           "Reserves space in the peer's ring, at most want bytes, to write into. Never blocks. Valid until the next "
           "call that sends.")
      .def("commit", &commit, "bytes"_a, "Sends the first bytes of the reserved space.")
      .def("wait_readable", &wait_readable, "timeout"_a = nb::none(),
           "Blocks until peek would show bytes, and returns their number; 0 at the end.")
      .def("wait_writable", &wait_writable, "bytes"_a = 1, "timeout"_a = nb::none(),
           "Blocks until reserve would return at least bytes (at most half the ring), and returns the free space.")
      .def("limit_unread", &limit_unread, "bytes"_a, "Limits the unread bytes in the peer's ring.");
}

}  // namespace
}  // namespace stream_calls

void bind_stream(nb::module_& module) {
  using namespace stream_calls;
  nb::class_<ByteStream, Connection> type(
      module, "Stream",
      "A connected, ordered, reliable byte stream, made by connect and Listener.accept. Any thread may make any call: "
      "one thread sends and one receives at a time, the others wait.");
  type.def("send", &send, "buffer"_a, "timeout"_a = nb::none(),
           nb::sig("def send(self, buffer: Buffer, timeout: float | None = None) -> int"),
           "Blocks until all bytes of the buffer were accepted, and returns their number. `moved` of an exception is "
           "the number accepted before it.")
      .def("try_send", &try_send, "buffer"_a, nb::sig("def try_send(self, buffer: Buffer) -> int | None"),
           "Sends without blocking, and returns the number of bytes accepted. None: no space now.")
      .def("receive", &receive, "size"_a = kShortCopy, "timeout"_a = nb::none(),
           nb::sig("def receive(self, size: int = 65536, timeout: float | None = None) -> bytes"),
           "Blocks until bytes have arrived, and returns at most size of them; b'' at the end.")
      .def("try_receive", &try_receive, "size"_a = kShortCopy,
           nb::sig("def try_receive(self, size: int = 65536) -> bytes | None"),
           "Receives without blocking. None: no bytes now; b'': the end.")
      .def("receive_into", &receive_into, "buffer"_a, "timeout"_a = nb::none(),
           nb::sig("def receive_into(self, buffer: Buffer, timeout: float | None = None) -> int"),
           "As receive, into a writable, contiguous buffer. Returns the number of bytes, 0 at the end.")
      .def("receive_all", &receive_all, "buffer"_a, "timeout"_a = nb::none(),
           nb::sig("def receive_all(self, buffer: Buffer, timeout: float | None = None) -> int"),
           "Blocks until the buffer is full. Returns the number of bytes; fewer than the buffer's size at the end.")
      .def_prop_ro("send_capacity",
                   [](ByteStream& self) { return self.held("send_capacity").stream().send_capacity(); })
      .def_prop_ro("receive_capacity",
                   [](ByteStream& self) { return self.held("receive_capacity").stream().receive_capacity(); });
  bind_in_place(type);
}

}  // namespace wherry::python
