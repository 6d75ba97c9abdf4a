// SPDX-License-Identifier: Apache-2.0
#include "bindings/python/connection.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <utility>

#include "bindings/python/errors.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace wherry::python {

Connection::Connection(std::shared_ptr<HeldStream> held)
    : held_(std::move(held)), peer_(held_->stream().peer().address.to_string()) {}

Connection::~Connection() {
  received.forget();
  reserved.forget();
  if (held_ == nullptr || held_.use_count() > 1) return;
  const Unlocked unlocked;  // closing a stream may block
  held_.reset();
}

HeldStream& Connection::held(const char* operation) const {
  if (held_ == nullptr || is_inherited()) fail(Result::failure(EBADF), operation);
  return *held_;
}

Connection::Call Connection::begin(Direction direction, const Deadline& deadline, const char* operation) {
  while (true) {
    (void)held(operation);
    const std::shared_ptr<Turn>& place = direction == Direction::sending ? sending_ : receiving_;
    std::shared_ptr<Turn> turn = place;
    Taken taken = take_turn(*turn, deadline, operation);
    (void)held(operation);  // may have been closed while this thread waited
    if (turn == place) return {std::move(turn), std::move(taken), held_};
  }
}

std::shared_ptr<HeldStream> Connection::take_over(const char* operation) {
  const Deadline forever(std::nullopt);
  const Call sending = begin(Direction::sending, forever, operation);
  const Call receiving = begin(Direction::receiving, forever, operation);
  received.take_back();
  reserved.take_back();
  return std::exchange(held_, nullptr);
}

void Connection::receive_in_turn_of(std::shared_ptr<Turn> turn) { receiving_ = std::move(turn); }

void Connection::fail(const Result& result, const char* operation) const { raise_result(result, operation, peer_); }

void Connection::end_views() noexcept {
  received.end();
  reserved.end();
}

void Connection::close(std::optional<double> timeout) {
  if (held_ == nullptr) return;
  if (is_inherited()) {
    end_views();
    held_.reset();
    return;
  }
  const Deadline deadline(timeout);
  const std::shared_ptr<HeldStream> held = held_;
  const std::shared_ptr<Turn> sending = sending_;
  const std::shared_ptr<Turn> receiving = receiving_;
  const bool both = sending->try_take() && (receiving->try_take() || (sending->give(), false));
  if (!both) held->stream().cancel();
  const Deadline forever(std::nullopt);
  const Taken first = both ? Taken(*sending) : take_turn(*sending, forever, "close");
  const Taken second = both ? Taken(*receiving) : take_turn(*receiving, forever, "close");
  if (held_ != held) return;  // another thread has closed it
  end_views();
  held_.reset();
  Result result;
  {
    const Unlocked unlocked;
    if (held.use_count() > 1) {
      result = held->messages.is_open() ? held->messages.flush() : Result();
      (void)held->stream().finish_sending();
    } else {
      result = held->messages.is_open() ? held->messages.close(deadline.remaining())
                                        : held->bytes.close(deadline.remaining());
    }
  }
  if (timeout && result.failed()) fail(result, "close");
}

void Connection::finish_sending() {
  const Call call = begin(Direction::sending, Deadline(std::nullopt), "finish_sending");
  const Unlocked unlocked;
  if (call.messages().is_open()) (void)call.messages().flush();
  (void)call.held->stream().finish_sending();
}

ByteStream::ByteStream(Stream stream)
    : Connection(std::make_shared<HeldStream>(HeldStream{.bytes = std::move(stream), .messages = {}})) {}

namespace {

nb::object optional_number(bool is_known, std::int64_t number) {
  return is_known ? nb::object(nb::int_(number)) : nb::none();
}

nb::dict counters_of(const Connection& self) {
  const StreamCounters counters = self.held("counters").stream().counters();
  nb::dict all;
  all["bytes_sent"] = counters.bytes_sent;
  all["bytes_received"] = counters.bytes_received;
  all["sends"] = counters.sends;
  all["receives"] = counters.receives;
  all["send_sleeps"] = counters.send_sleeps;
  all["receive_sleeps"] = counters.receive_sleeps;
  all["wakes"] = counters.wakes;
  all["bytes_sent_split"] = counters.bytes_sent_split;
  all["bytes_received_split"] = counters.bytes_received_split;
  return all;
}

void bind_peer(nb::module_& module) {
  nb::class_<Peer>(module, "Peer",
                   "The process at the other end. A field is None if the operating system does not vouch for it.")
      .def_prop_ro(
          "address", [](const Peer& self) { return self.address.to_string(); }, "The peer's own statement.")
      .def_prop_ro(
          "pid", [](const Peer& self) { return optional_number(self.pid != 0, self.pid); },
          nb::sig("def pid(self) -> int | None"))
      .def_prop_ro(
          "uid", [](const Peer& self) { return optional_number(self.vouched(), self.uid); },
          nb::sig("def uid(self) -> int | None"))
      .def_prop_ro(
          "gid", [](const Peer& self) { return optional_number(self.vouched(), self.gid); },
          nb::sig("def gid(self) -> int | None"))
      .def("__repr__", [](const Peer& self) { return "<wherry.Peer " + self.address.to_string() + ">"; });
}

}  // namespace

void bind_connection(nb::module_& module) {
  bind_peer(module);
  nb::class_<Connection>(module, "Connection", nb::is_weak_referenceable(),
                         "The base of Stream and FramedStream. A context manager, which closes it.")
      .def(
          "fileno", [](Connection& self) { return self.held("fileno").stream().receive_descriptor(); },
          "A descriptor that is readable while bytes, the end or a failure can be received. Never close it.")
      .def(
          "send_descriptor", [](Connection& self) { return self.held("send_descriptor").stream().send_descriptor(); },
          "A descriptor that becomes readable when space returns after a try_send that would block.")
      .def("finish_sending", &Connection::finish_sending,
           "Half-close: the peer receives everything sent so far, then the end.")
      .def(
          "cancel", [](Connection& self) { self.held("cancel").stream().cancel(); },
          "Makes every blocked and later call fail with Cancelled. May be called from any thread.")
      .def("close", &Connection::close, "timeout"_a = nb::none(),
           "Finishes sending, and frees the stream. Calls of other threads end with Cancelled. With a timeout, raises "
           "an Error if the peer's side has not acknowledged all bytes by then.")
      .def_prop_ro("closed", &Connection::is_closed)
      .def_prop_ro(
          "local", [](Connection& self) { return self.held("local").stream().local().to_string(); },
          "This side's address.")
      .def_prop_ro(
          "peer", [](Connection& self) { return self.held("peer").stream().peer(); }, "The process at the other end.")
      .def("counters", &counters_of, nb::sig("def counters(self) -> dict[str, int]"))
      .def(
          "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> typing.Self"))
      .def(
          "__exit__", [](Connection& self, const nb::args&) { self.close({}); },
          nb::sig("def __exit__(self, *args: object) -> None"));
}

}  // namespace wherry::python
