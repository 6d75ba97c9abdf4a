// SPDX-License-Identifier: Apache-2.0
// The common part of Publisher and Subscriber in Python: listening, connecting, admitting, descriptors, closing.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>

#include <wherry/wherry.hpp>

#include "bindings/python/errors.hpp"
#include "bindings/python/interpreter.hpp"

namespace wherry::python {

[[nodiscard]] inline std::size_t peer_count(const Publisher& publisher) { return publisher.subscribers(); }
[[nodiscard]] inline std::size_t peer_count(const Subscriber& subscriber) { return subscriber.publishers(); }

/// Blocks until `wanted` peers are connected. Throws the errors of admit.
template <class Library>
std::size_t admit_in_slices(Library& library, std::size_t wanted, const Deadline& deadline) {
  while (true) {
    try {
      const Unlocked unlocked;
      return library.admit(wanted, deadline.slice());
    } catch (const Error& error) {
      if (error.code().value() != ETIMEDOUT || deadline.has_passed()) throw;
    }
    run_signal_handlers();
  }
}

/// Blocks until one more peer is connected. If peers leave meanwhile, the number to reach is lowered.
template <class Library>
void join_one(Library& library, const std::string& address, std::optional<double> timeout) {
  std::size_t before = peer_count(library);
  {
    const Unlocked unlocked;
    library.start_connect(address, Deadline(timeout).remaining());
  }
  const Deadline deadline(timeout);
  while (true) {
    const Deadline slice(std::chrono::duration<double>(deadline.slice()).count());
    try {
      (void)admit_in_slices(library, before + 1, slice);
      return;
    } catch (const Error& error) {
      if (error.code().value() != ETIMEDOUT || deadline.has_passed()) throw;
    }
    run_signal_handlers();
    before = std::min(before, peer_count(library));
  }
}

/// `library_of(self, operation)` returns the C++ object, or throws. `self.begin` takes the turn.
template <class Self, class LibraryOf>
void bind_joining(nanobind::class_<Self>& type, LibraryOf library_of) {
  namespace nb = nanobind;
  using namespace nb::literals;
  using Seconds = std::optional<double>;
  type.def(
          "listen",
          [library_of](Self& self, const std::string& address) {
            const auto turn = self.begin(Deadline(std::nullopt), "listen");
            library_of(self, "listen").listen(address);
          },
          "address"_a, "Lets peers connect. At most once. `*` as port is a free port; local returns it.")
      .def(
          "connect",
          [library_of](Self& self, const std::string& address, Seconds timeout) {
            const auto turn = self.begin(Deadline(timeout), "connect");
            join_one(library_of(self, "connect"), address, timeout);
          },
          "address"_a, "timeout"_a = nb::none(),
          "Connects to a peer that listens, or will, and blocks until it has accepted. Any number of times. None: "
          "waits for the listener for the configured time (WHERRY_CONNECT_TIMEOUT).")
      .def(
          "start_connect",
          [library_of](Self& self, const std::string& address, Seconds wait) {
            const auto turn = self.begin(Deadline(std::nullopt), "start_connect");
            library_of(self, "start_connect").start_connect(address, Deadline(wait).remaining());
          },
          "address"_a, "wait"_a = nb::none(), "The same, but returns at once: admit completes it.")
      .def(
          "admit",
          [library_of](Self& self, std::size_t wanted, Seconds timeout) {
            const Deadline deadline(timeout);
            const auto turn = self.begin(deadline, "admit");
            return admit_in_slices(library_of(self, "admit"), wanted, deadline);
          },
          "wanted"_a = 0, "timeout"_a = nb::none(),
          "Accepts new peers, and blocks until at least wanted are connected (0: never blocks). Returns their number.")
      .def(
          "fileno", [library_of](Self& self) { return library_of(self, "fileno").descriptor(); },
          "A descriptor that is readable while there may be something to do.")
      .def_prop_ro(
          "local", [library_of](Self& self) { return library_of(self, "local").local().to_string(); },
          "The address of the port, with * resolved.")
      .def("cancel", &Self::cancel,
           "Makes every blocked and later call fail with Cancelled. May be called from any thread.")
      .def("close", &Self::close)
      .def_prop_ro("closed", &Self::is_closed)
      .def(
          "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> typing.Self"))
      .def(
          "__exit__", [](Self& self, const nb::args&) { self.close(); },
          nb::sig("def __exit__(self, *args: object) -> None"));
}

}  // namespace wherry::python
