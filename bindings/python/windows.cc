// SPDX-License-Identifier: Apache-2.0
// wherry.Windows.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "bindings/python/connection.hpp"
#include "bindings/python/errors.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace wherry::python {
namespace {

Access access_of(const std::string& name) {
  if (name == "read") return Access::read;
  if (name == "write") return Access::write;
  if (name == "read_write") return Access::read_write;
  throw nb::value_error("an access is 'read', 'write' or 'read_write'");
}

/// Gets the windows from the stream in each call, so that a call after close fails instead of using a dangling pointer.
class PythonWindows {
 public:
  explicit PythonWindows(nb::object connection)
      : connection_(std::move(connection)), stream_(nb::cast<Connection*>(connection_)) {
    (void)stream_->held("windows").stream().windows();
  }
  std::uint64_t add(nb::handle memory, const std::string& access, std::optional<std::uint64_t> offset) {
    const Buffer buffer(memory, Buffer::Use::write);
    const Access allowed = access_of(access);
    const auto held = stream_->share("add");
    const Unlocked unlocked;
    return held->stream().windows().add(buffer.bytes(), allowed, offset);
  }
  void remove(std::uint64_t offset, std::size_t bytes) {
    call("remove", [&](Windows windows) { return windows.remove(offset, bytes); });
  }
  void write_to(nb::handle source, std::uint64_t remote, bool complete, bool ordered) {
    const Buffer buffer(source, Buffer::Use::read);
    const std::span<const std::byte> bytes = buffer.bytes();
    const RmaOptions options{.complete = complete, .ordered = ordered};
    call("write_to", [&](Windows windows) { return windows.write_to(bytes, remote, options); });
  }
  void read_from(nb::handle destination, std::uint64_t remote, bool ordered) {
    const Buffer buffer(destination, Buffer::Use::write);
    const RmaOptions options{.complete = true, .ordered = ordered};
    call("read_from", [&](Windows windows) { return windows.read_from(buffer.bytes(), remote, options); });
  }
  void fence() {
    call("fence", [&](Windows windows) { return windows.wait(windows.mark()); });
  }
  void signal(std::uint64_t remote, std::uint64_t value) {
    const Signal word{.offset = remote, .value = value};
    call("signal", [&](Windows windows) { return windows.signal({}, word); });
  }
  nb::object map(std::uint64_t remote, std::size_t bytes, const std::string& access) {
    const Access wanted = access_of(access);
    const auto held = stream_->share("map");
    auto mapped = std::make_shared<MappedWindow>();
    {
      const Unlocked unlocked;
      *mapped = held->stream().windows().map(remote, bytes, wanted);
    }
    const std::span<std::byte> memory = mapped->bytes();
    return view_of(exporter_of({.owner = std::move(mapped), .bytes = memory, .writable = wanted != Access::read}));
  }
  [[nodiscard]] bool can_map() const { return stream_->held("can_map").stream().windows().can_map(); }

 private:
  template <class Transfer>
  void call(const char* operation, Transfer transfer) {
    const auto held = stream_->share(operation);
    const Windows windows = held->stream().windows();
    Result result;
    {
      const Unlocked unlocked;
      result = transfer(windows);
    }
    if (result.failed()) stream_->fail(result, operation);
  }

  nb::object connection_;  // keeps the stream alive
  Connection* stream_;
};

}  // namespace

void bind_windows(nb::module_& module) {
  nb::class_<PythonWindows>(module, "Windows",
                            "Memory of each side that the other reads, writes and maps by offset. Both sides connect "
                            "and listen with windows=True. The program transfers the offsets, such as over the stream.")
      .def(nb::init<nb::object>(), "stream"_a, nb::sig("def __init__(self, stream: Connection) -> None"))
      .def("add", &PythonWindows::add, "memory"_a, "access"_a = "read_write", "offset"_a = nb::none(),
           nb::sig("def add(self, memory: Buffer, access: str = 'read_write', offset: int | None = None) -> int"),
           "Registers whole pages, such as an mmap, and returns their offset. access: what the peer may do.")
      .def("remove", &PythonWindows::remove, "offset"_a, "bytes"_a)
      .def(
          "write_to", &PythonWindows::write_to, "source"_a, "remote"_a, nb::kw_only(), "complete"_a = true,
          "ordered"_a = false,
          nb::sig("def write_to(self, source: Buffer, remote: int, *, complete: bool = True, ordered: bool = False) -> "
                  "None"),
          "Copies to the peer's window. Without complete the source must stay unchanged until a fence.")
      .def("read_from", &PythonWindows::read_from, "destination"_a, "remote"_a, nb::kw_only(), "ordered"_a = false,
           nb::sig("def read_from(self, destination: Buffer, remote: int, *, ordered: bool = False) -> None"))
      .def("fence", &PythonWindows::fence, "Blocks until all transfers that this side has started are complete.")
      .def("signal", &PythonWindows::signal, "remote"_a, "value"_a,
           "Stores a 64-bit word in the peer's window once all earlier transfers are complete.")
      .def("map", &PythonWindows::map, "remote"_a, "bytes"_a, "access"_a = "read_write",
           nb::sig("def map(self, remote: int, bytes: int, access: str = 'read_write') -> memoryview"),
           "Maps whole pages of the peer's windows as shared memory. The view outlives the window, the stream and the "
           "peer.")
      .def_prop_ro("can_map", &PythonWindows::can_map);
}

}  // namespace wherry::python
