// SPDX-License-Identifier: Apache-2.0
// wherry.Poller.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "bindings/python/connection.hpp"
#include "bindings/python/errors.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace wherry::python {
namespace {

using Direction = Connection::Direction;
using Seconds = std::optional<double>;

/// Streams in the poller use the poller's turn to receive and to close, so no other thread can do either during a wait.
class PythonPoller {
 public:
  void add(nb::handle source, nb::handle token) {
    const Taken taken = begin("add");
    const nb::object known = nb::borrow(token.is_none() ? source : token);
    forget_closed();
    Connection* connection = nullptr;
    if (nb::try_cast(source, connection) && connection != nullptr) {
      if (connection->receives_in_turn_of(turn_))
        raise_result(Result::failure(EEXIST), "add", connection->peer_address());
      const auto call = connection->begin(Direction::receiving, Deadline(0.0), "add");
      poller_->add(call.held->stream(), ++last_);
      connection->receive_in_turn_of(turn_);
    } else {
      poller_->add(descriptor_of(source), ++last_);
    }
    entries_.emplace(last_, Entry{.token = known, .source = nb::borrow(source)});
  }
  void remove(nb::handle source) {
    const Taken taken = begin("remove");
    Connection* connection = nullptr;
    if (!nb::try_cast(source, connection) || connection == nullptr) {
      poller_->remove(descriptor_of(source));
    } else if (!connection->is_closed()) {
      poller_->remove(connection->held("remove").stream());
      connection->receive_in_turn_of(std::make_shared<Turn>());
    }
    std::erase_if(entries_, [&](const auto& entry) { return entry.second.source.equal(source); });
  }
  nb::list wait(Seconds timeout, std::size_t most) {
    const Deadline deadline(timeout);
    const Taken taken = take_turn(*turn_, deadline, "wait");
    check("wait");
    std::vector<Poller::Token> ready(most);
    std::size_t reports = 0;
    (void)in_slices(deadline, [&](std::chrono::nanoseconds slice) {
      reports = poller_->wait(ready, slice);
      const bool is_over = reports != 0 || interrupted_.exchange(false);
      return is_over ? Result::moved(1) : Result::failure(ETIMEDOUT);
    });
    nb::list tokens;
    for (const Poller::Token token : std::span(ready).first(reports)) {
      if (const auto found = entries_.find(token); found != entries_.end()) tokens.append(found->second.token);
    }
    return tokens;
  }
  void interrupt() {
    check("interrupt");
    interrupted_ = true;
    poller_->interrupt();
  }
  int descriptor() {
    check("fileno");
    return poller_->descriptor();
  }
  void close() {
    if (!poller_) return;
    if (generation_ == fork_generation()) interrupt();
    const Taken taken = generation_ == fork_generation() ? take_turn(*turn_, Deadline(std::nullopt), "close") : Taken();
    poller_.reset();
    entries_.clear();
  }
  [[nodiscard]] bool is_closed() const { return !poller_; }

  int traverse(visitproc visit, void* argument) {
    for (const auto& [number, entry] : entries_) {
      if (const int stop = visit(entry.token.ptr(), argument)) return stop;
      if (const int stop = visit(entry.source.ptr(), argument)) return stop;
    }
    return 0;
  }
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    nb::object token;
    nb::object source;
  };
  void check(const char* operation) const {
    if (!poller_ || generation_ != fork_generation()) raise_result(Result::failure(EBADF), operation, "");
  }
  Taken begin(const char* operation) {
    check(operation);
    Taken taken = take_turn(*turn_, Deadline(std::nullopt), operation);
    check(operation);
    return taken;
  }
  static int descriptor_of(nb::handle source) {
    const int descriptor = PyObject_AsFileDescriptor(source.ptr());
    if (descriptor < 0) throw nb::python_error();
    return descriptor;
  }
  /// Removes the entries of closed streams, which have left the C++ poller already.
  void forget_closed() {
    std::erase_if(entries_, [](const auto& entry) {
      Connection* connection = nullptr;
      return nb::try_cast(entry.second.source, connection) && connection != nullptr && connection->is_closed();
    });
  }

  std::optional<Poller> poller_{std::in_place};
  std::shared_ptr<Turn> turn_ = std::make_shared<Turn>();
  std::map<Poller::Token, Entry> entries_;
  Poller::Token last_ = 0;
  std::atomic<bool> interrupted_{false};
  std::uint32_t generation_ = fork_generation();
};

int traverse_poller(PyObject* self, visitproc visit, void* argument) {
  if (const int stop = visit(reinterpret_cast<PyObject*>(Py_TYPE(self)), argument)) return stop;
  return nb::inst_ready(self) ? nb::inst_ptr<PythonPoller>(self)->traverse(visit, argument) : 0;
}

int clear_poller(PyObject* self) {
  nb::inst_ptr<PythonPoller>(self)->clear();
  return 0;
}

PyType_Slot poller_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_poller)},
                              {Py_tp_clear, reinterpret_cast<void*>(&clear_poller)},
                              {0, nullptr}};

}  // namespace

void bind_poller(nb::module_& module) {
  nb::class_<PythonPoller>(module, "Poller", nb::type_slots(poller_slots),
                           "Finds the streams that have something to receive, without a look at the others.")
      .def(nb::init<>())
      .def("add", &PythonPoller::add, "source"_a, "token"_a = nb::none(),
           nb::sig("def add(self, source: Connection | HasFileno | int, token: object = None) -> None"),
           "Adds a stream, a descriptor, or an object with a fileno(), such as a Listener. wait returns the token; "
           "None: the source itself. While a stream is in a poller its own fileno() reports nothing.")
      .def("remove", &PythonPoller::remove, "source"_a,
           nb::sig("def remove(self, source: Connection | HasFileno | int) -> None"),
           "Removes the source. A closed stream is removed automatically; remove a descriptor before you close it.")
      .def("wait", &PythonPoller::wait, "timeout"_a = nb::none(), "most"_a = 64,
           nb::sig("def wait(self, timeout: float | None = None, most: int = 64) -> list[typing.Any]"),
           "Blocks until something is ready. Returns the tokens of what is ready, each once; empty after the timeout "
           "or interrupt. A report may be spurious: receive by calls that do not block.")
      .def("interrupt", &PythonPoller::interrupt,
           "Makes the current wait, or else the next, return. May be called from any thread.")
      .def("fileno", &PythonPoller::descriptor,
           "A descriptor that is readable while wait may have something to report.")
      .def("close", &PythonPoller::close)
      .def_prop_ro("closed", &PythonPoller::is_closed)
      .def(
          "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> typing.Self"))
      .def(
          "__exit__", [](PythonPoller& self, const nb::args&) { self.close(); },
          nb::sig("def __exit__(self, *args: object) -> None"));
}

}  // namespace wherry::python
