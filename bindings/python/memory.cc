// SPDX-License-Identifier: Apache-2.0
#include "bindings/python/memory.hpp"

#include <utility>

namespace nb = nanobind;

namespace wherry::python {
namespace {

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  Memory* const memory = nb::inst_ptr<Memory>(self);
  const int status = PyBuffer_FillInfo(view, self, memory->bytes.data(), static_cast<Py_ssize_t>(memory->bytes.size()),
                                       memory->writable ? 0 : 1, flags);
  if (status == 0) ++memory->exports;
  return status;
}
void release_buffer(PyObject* self, Py_buffer*) noexcept { --nb::inst_ptr<Memory>(self)->exports; }

/// Ends a memoryview, unless a consumer uses it.
void release(const nb::object& view) noexcept {
  Py_XDECREF(PyObject_CallMethod(view.ptr(), "release", nullptr));
  PyErr_Clear();
}

/// Replaces the exceptions for a buffer that is not writable (numpy raises ValueError) by one kind of exception.
[[noreturn]] void refuse_to_write(nb::handle object) {
  const bool is_buffer = PyObject_CheckBuffer(object.ptr()) != 0;
  PyErr_Clear();
  if (!is_buffer) throw nb::type_error("a buffer is needed, such as a bytearray or an ndarray");
  throw nb::buffer_error("the buffer is read-only or not contiguous; receive into a contiguous, writable one");
}

}  // namespace

Buffer::Buffer(nb::handle object, Use use) {
  if (use == Use::write) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_WRITABLE) != 0) refuse_to_write(object);
    return;
  }
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_FULL_RO) != 0) throw nb::python_error();
  if (PyBuffer_IsContiguous(&view_, 'C') != 0) return;
  copy_ = nb::steal(PyBytes_FromStringAndSize(nullptr, view_.len));
  const int failed =
      copy_.is_valid() ? PyBuffer_ToContiguous(PyBytes_AsString(copy_.ptr()), &view_, view_.len, 'C') : -1;
  PyBuffer_Release(&view_);
  if (failed != 0 || PyObject_GetBuffer(copy_.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
}

Buffer::~Buffer() { PyBuffer_Release(&view_); }

nb::object exporter_of(Memory memory) { return nb::cast(std::move(memory)); }

nb::object view_of(const nb::object& exporter) {
  nb::object view = nb::steal(PyMemoryView_FromObject(exporter.ptr()));
  if (!view.is_valid()) throw nb::python_error();
  return view;
}

nb::object LentViews::lend(Memory memory) {
  const nb::object exporter = exporter_of(std::move(memory));
  return lent_.emplace_back(Lent{.exporter = exporter, .view = view_of(exporter)}).view;
}

void LentViews::take_back() {
  for (; !lent_.empty(); lent_.pop_back()) {
    const Lent& lent = lent_.back();
    release(lent.view);
    // An array has its own view of the same buffer.
    if (nb::inst_ptr<Memory>(lent.exporter)->exports != 0) {
      throw nb::buffer_error("an array still uses memory that this call returns; delete the array first, or copy it");
    }
  }
}

void LentViews::end() noexcept {
  for (const Lent& lent : lent_) release(lent.view);
  lent_.clear();
}

void bind_memory(nb::module_& module) {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)},
                                {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_buffer)},
                                {0, nullptr}};
  const nb::class_<Memory> memory(module, "_Memory", nb::type_slots(slots));
}

}  // namespace wherry::python
