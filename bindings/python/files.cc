// SPDX-License-Identifier: Apache-2.0
// wherry.files, bound as wherry._native: File, open_file.
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

files::Path path_of(const std::string& name) {
  if (name == "auto") return files::Path::automatic;
  if (name == "kernel") return files::Path::kernel;
  if (name == "cache") return files::Path::cache;
  if (name == "card") return files::Path::card;
  if (name == "host") return files::Path::host;
  throw nb::value_error("a path is 'auto', 'kernel', 'cache', 'card' or 'host'");
}

/// A file (wherry.files.File). A call keeps the file open, so close of another thread takes effect after the call.
class PythonFile {
 public:
  PythonFile(files::File file, std::string name)
      : file_(std::make_shared<files::File>(std::move(file))), name_(std::move(name)) {}
  ~PythonFile() {
    const Unlocked unlocked;
    file_.reset();
  }
  PythonFile(const PythonFile&) = delete;
  PythonFile& operator=(const PythonFile&) = delete;

  nb::object pread(std::size_t size, std::uint64_t offset) {
    nb::object bytes = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
    if (!bytes.is_valid()) throw nb::python_error();
    const std::span to(reinterpret_cast<std::byte*>(PyBytes_AsString(bytes.ptr())), size);
    const std::size_t got = call("pread", [&](files::File& file) { return file.pread(to, offset); });
    if (got == size) return bytes;
    return nb::bytes(to.data(), got);
  }
  std::size_t pread_into(nb::handle buffer, std::uint64_t offset) {
    const Buffer place(buffer, Buffer::Use::write);
    return call("pread_into", [&](files::File& file) { return file.pread(place.bytes(), offset); });
  }
  std::size_t pwrite(nb::handle buffer, std::uint64_t offset) {
    const Buffer data(buffer, Buffer::Use::read);
    return call("pwrite", [&](files::File& file) { return file.pwrite(data.bytes(), offset); });
  }
  std::size_t append(nb::handle buffer) {
    const Buffer data(buffer, Buffer::Use::read);
    return call("append", [&](files::File& file) { return file.append(data.bytes()); });
  }
  void sync(bool data_only) {
    (void)call("sync", [&](files::File& file) { return file.sync(data_only); });
  }
  void set_size(std::uint64_t size) {
    (void)call("set_size", [&](files::File& file) { return file.set_size(size); });
  }
  std::uint64_t size() {
    files::Status status;
    (void)call("size", [&](files::File& file) { return file.stat(status); });
    return status.size;
  }
  /// The views keep the file open, because the file owns the mapping.
  nb::object view(std::uint64_t offset, std::size_t length) {
    const auto file = share("view");
    std::span<const std::byte> bytes;
    {
      const Unlocked unlocked;
      bytes = file->view(offset, length);
    }
    return view_of(exporter_of({.owner = file, .bytes = {const_cast<std::byte*>(bytes.data()), bytes.size()}}));
  }
  void close() {
    const auto file = std::exchange(file_, nullptr);
    if (file == nullptr || file.use_count() > 1) return;
    Result result;
    {
      const Unlocked unlocked;
      result = file->close();
    }
    if (result.failed()) raise_result(result, "close", name_);
  }
  [[nodiscard]] bool is_closed() const noexcept { return file_ == nullptr; }

 private:
  std::shared_ptr<files::File> share(const char* operation) const {
    if (file_ == nullptr) raise_result(Result::failure(EBADF), operation, name_);
    return file_;
  }
  template <class Work>
  std::size_t call(const char* operation, Work work) const {
    const auto file = share(operation);
    Result result;
    {
      const Unlocked unlocked;
      result = work(*file);
    }
    if (result.failed()) raise_result(result, operation, name_);
    return result.bytes;
  }

  std::shared_ptr<files::File> file_;
  std::string name_;
};

std::unique_ptr<PythonFile> open(const std::string& name, int flags, unsigned mode,
                                 const std::optional<std::string>& path, double timeout) {
  files::Options options;
  if (path) options.path = path_of(*path);
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(timeout * 1000));
  const Unlocked unlocked;
  return std::make_unique<PythonFile>(files::open(name, flags, mode, options), name);
}

}  // namespace

void bind_files(nb::module_& module) {
  nb::class_<PythonFile>(module, "File", nb::is_weak_referenceable(),
                         "An open file of this machine, or of a host: wherry://NODE:PORT/path. It has no offset.")
      .def("pread", &PythonFile::pread, "size"_a, "offset"_a,
           nb::sig("def pread(self, size: int, offset: int) -> bytes"),
           "Reads at an offset. A short result means the end of the file.")
      .def("pread_into", &PythonFile::pread_into, "buffer"_a, "offset"_a,
           nb::sig("def pread_into(self, buffer: Buffer, offset: int) -> int"))
      .def("pwrite", &PythonFile::pwrite, "buffer"_a, "offset"_a,
           nb::sig("def pwrite(self, buffer: Buffer, offset: int) -> int"))
      .def("append", &PythonFile::append, "buffer"_a, nb::sig("def append(self, buffer: Buffer) -> int"),
           "Appends to a file that was opened with os.O_APPEND.")
      .def("sync", &PythonFile::sync, "data_only"_a = false,
           "Makes all earlier writes durable. data_only: as fdatasync.")
      .def("set_size", &PythonFile::set_size, "size"_a)
      .def_prop_ro("size", &PythonFile::size)
      .def("view", &PythonFile::view, "offset"_a, "length"_a,
           nb::sig("def view(self, offset: int, length: int) -> memoryview"),
           "Maps bytes of a file of this machine from the kernel's page cache, without a copy. Empty where the file "
           "cannot be mapped. A read behind the end of a file that was made shorter raises SIGBUS.")
      .def("close", &PythonFile::close)
      .def_prop_ro("closed", &PythonFile::is_closed)
      .def(
          "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> typing.Self"))
      .def(
          "__exit__", [](PythonFile& self, const nb::args&) { self.close(); },
          nb::sig("def __exit__(self, *args: object) -> None"));
  module.def("open_file", &open, "name"_a, "flags"_a = 0, "mode"_a = 0666, nb::kw_only(), "path"_a = nb::none(),
             "timeout"_a = 60.0,
             "Opens a file, as os.open. path: 'auto', 'kernel', 'cache' or 'host'; None: WHERRY_FILE_PATH. timeout: "
             "how long a call waits for a host's server that is gone, in seconds.");
}

}  // namespace wherry::python
