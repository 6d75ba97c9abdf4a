// SPDX-License-Identifier: Apache-2.0
// wherry.listen, wherry.connect, wherry.Listener, wherry.Connecting.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <utility>

#include "bindings/python/connection.hpp"
#include "bindings/python/errors.hpp"
#include "stream/waiter.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace wherry::python {
namespace {

using Seconds = std::optional<double>;
using Made = std::unique_ptr<ByteStream>;

Made made(Stream stream) { return std::make_unique<ByteStream>(std::move(stream)); }

/// A listener (wherry.Listener). `close` of another thread ends a waiting accept within a slice.
class PythonListener {
 public:
  PythonListener(const std::string& address, StreamOptions options)
      : listener_(wherry::listen(address, options)), address_(listener_.local().to_string()) {}

  Made accept(Seconds timeout) {
    const Deadline deadline(timeout);
    const Taken taken = take_turn(turn_, deadline, "accept");
    while (true) {
      check("accept");
      if (auto stream = accepted()) return made(std::move(*stream));
      if (deadline.has_passed()) {
        raise_error(
            {.error = ETIMEDOUT, .operation = "accept", .address = address_, .advice = "nobody connected in time"});
      }
      wait(deadline);
    }
  }
  Made try_accept() {
    const Taken taken = take_turn(turn_, Deadline(0.0), "try_accept");
    check("try_accept");
    auto stream = accepted();
    return stream ? made(std::move(*stream)) : nullptr;
  }
  int descriptor() const {
    check("fileno");
    return listener_.descriptor();
  }
  void close() {
    if (closed_.exchange(true)) return;
    if (generation_ != fork_generation()) {
      listener_ = {};
      return;
    }
    const Taken taken = take_turn(turn_, Deadline(std::nullopt), "close");
    listener_ = {};
  }
  [[nodiscard]] bool is_closed() const { return closed_; }
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  void check(const char* operation) const {
    if (!closed_ && generation_ == fork_generation()) return;
    raise_result(Result::failure(closed_ ? ECANCELED : EBADF), operation, address_);
  }
  std::optional<Stream> accepted() {
    const Unlocked unlocked;
    return listener_.try_accept();
  }
  void wait(const Deadline& deadline) const {
    const auto slice = std::chrono::duration<double>(deadline.slice()).count();
    (void)wait_until_readable(listener_.descriptor(), Deadline(slice));
  }

  Listener listener_;
  std::string address_;
  Turn turn_;
  std::atomic<bool> closed_{false};
  std::uint32_t generation_ = fork_generation();
};

/// The deadline of a connect. None: the configured time.
Deadline connect_deadline(Seconds timeout) {
  if (timeout) return Deadline(timeout);
  const fabric::Deadline end = stream::connect_deadline({});
  if (!end) return Deadline(std::nullopt);
  const std::chrono::duration<double> left = *end - std::chrono::steady_clock::now();
  return Deadline(std::max(left.count(), 0.0));
}

/// A connection attempt in progress (wherry.Connecting).
class PythonConnecting {
 public:
  PythonConnecting(const std::string& address, const StreamOptions& options, const Deadline& deadline) {
    const Unlocked unlocked;  // a name lookup may block
    attempt_ = wherry::start_connect(address, options, deadline.remaining().value_or(std::chrono::nanoseconds::max()));
  }
  std::optional<Stream> try_finish() {
    const Unlocked unlocked;
    return attempt_.try_finish();
  }
  Stream finish(const Deadline& deadline) {
    while (true) {
      if (auto stream = try_finish()) return std::move(*stream);
      if (wait_until_readable(attempt_.descriptor(), deadline)) continue;
      const Unlocked unlocked;
      return attempt_.finish(std::chrono::nanoseconds(0));  // connected by now, or throws the error with the reason
    }
  }
  [[nodiscard]] int descriptor() const { return attempt_.descriptor(); }

 private:
  Connecting attempt_;
};

Made connect_stream(const std::string& address, Seconds timeout, std::size_t ring_bytes, bool windows) {
  const Deadline deadline = connect_deadline(timeout);
  return made(PythonConnecting(address, {.ring_bytes = ring_bytes, .windows = windows}, deadline).finish(deadline));
}

std::unique_ptr<PythonConnecting> start_stream(const std::string& address, Seconds wait, std::size_t ring_bytes,
                                               bool windows) {
  const StreamOptions options{.ring_bytes = ring_bytes, .windows = windows};
  return std::make_unique<PythonConnecting>(address, options, connect_deadline(wait));
}

void bind_connecting(nb::module_& module) {
  nb::class_<PythonConnecting>(module, "Connecting", "A connection attempt in progress, made by start_connect.")
      .def(
          "try_finish",
          [](PythonConnecting& self) {
            auto stream = self.try_finish();
            return stream ? made(std::move(*stream)) : nullptr;
          },
          nb::sig("def try_finish(self) -> Stream | None"),
          "Completes the attempt without blocking. None: no listener or no answer yet.")
      .def(
          "finish",
          [](PythonConnecting& self, Seconds timeout) { return made(self.finish(connect_deadline(timeout))); },
          "timeout"_a = nb::none(), "The same, but blocks until the attempt is over.")
      .def("fileno", &PythonConnecting::descriptor,
           "A descriptor that becomes readable when try_finish has something to do.");
}

}  // namespace

void bind_setup(nb::module_& module) {
  nb::class_<PythonListener>(module, "Listener", nb::is_weak_referenceable(),
                             "A port that accepts connections, made by listen. A context manager, which closes it.")
      .def("accept", &PythonListener::accept, "timeout"_a = nb::none(), "Blocks until a peer connects.")
      .def("try_accept", &PythonListener::try_accept, nb::sig("def try_accept(self) -> Stream | None"),
           "Accepts without blocking. None: no peer waits.")
      .def("fileno", &PythonListener::descriptor, "A descriptor that is readable while a peer may wait for accept.")
      .def("close", &PythonListener::close, "Frees the port and refuses the peers that wait for accept.")
      .def_prop_ro("closed", &PythonListener::is_closed)
      .def_prop_ro("local", &PythonListener::address, "The address of the port, with * resolved.")
      .def(
          "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> typing.Self"))
      .def(
          "__exit__", [](PythonListener& self, const nb::args&) { self.close(); },
          nb::sig("def __exit__(self, *args: object) -> None"));
  bind_connecting(module);
  module.def(
      "listen",
      [](const std::string& address, std::size_t ring_bytes, bool windows) {
        return std::make_unique<PythonListener>(address, StreamOptions{.ring_bytes = ring_bytes, .windows = windows});
      },
      "address"_a, nb::kw_only(), "ring_bytes"_a = 0, "windows"_a = false,
      "Listens on an address. `*` as port is a free port; Listener.local returns it.");
  module.def("connect", &connect_stream, "address"_a, "timeout"_a = nb::none(), nb::kw_only(), "ring_bytes"_a = 0,
             "windows"_a = false,
             "Connects, and blocks until the peer accepts. Without a listener it retries for timeout seconds (None: "
             "the configured time, WHERRY_CONNECT_TIMEOUT, 10 s).");
  module.def("start_connect", &start_stream, "address"_a, "wait"_a = nb::none(), nb::kw_only(), "ring_bytes"_a = 0,
             "windows"_a = false, "Starts to connect, and returns at once.");
}

}  // namespace wherry::python
