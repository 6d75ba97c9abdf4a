// SPDX-License-Identifier: Apache-2.0
// Memory of Wherry that Python accesses in place, and memory of Python that Wherry accesses.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace wherry::python {

/// A buffer of a Python object (bytes, bytearray, memoryview, ndarray) for the time of a call. Meanwhile the object can
/// be neither resized nor freed. Constructor and destructor need the GIL.
class Buffer {
 public:
  enum class Use { read, write };
  /// Use::read: a buffer that is not contiguous is copied, in C order. Use::write: the buffer must be contiguous and
  /// writable. Throws TypeError, BufferError.
  Buffer(nanobind::handle object, Use use);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const noexcept {
    return {static_cast<std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
  nanobind::object copy_;
};

/// Exports memory that `owner` keeps.
struct Memory {
  std::shared_ptr<const void> owner;
  std::span<std::byte> bytes;
  bool writable = false;
  Py_ssize_t exports = 0;  ///< buffers that consumers hold
};

/// An object that exports the memory, and a memoryview of that object. The memory lives until the last view, or array
/// over a view, is gone.
nanobind::object exporter_of(Memory memory);
nanobind::object view_of(const nanobind::object& exporter);

/// Views that are valid until a later call, such as those of peek until consume.
class LentViews {
 public:
  nanobind::object lend(Memory memory);
  /// Ends the views, which then raise ValueError. Throws BufferError while an array uses one of them.
  void take_back();
  /// The same, but arrays keep the memory.
  void end() noexcept;
  /// Views and arrays keep the memory.
  void forget() noexcept { lent_.clear(); }

 private:
  struct Lent {
    nanobind::object exporter;
    nanobind::object view;
  };
  std::vector<Lent> lent_;
};

void bind_memory(nanobind::module_& module);

}  // namespace wherry::python
