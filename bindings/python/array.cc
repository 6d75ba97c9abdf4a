// SPDX-License-Identifier: Apache-2.0
#include "bindings/python/array.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

namespace nb = nanobind;

namespace wherry::python {
namespace {

using layout::ArrayHeader;

constexpr std::size_t kMaxItemDigits = 8;

/// The element size of a numpy typestr in bytes: byte order, kind, number, and a unit for dates. 0: not a typestr.
std::size_t item_bytes_of(std::string_view dtype) {
  if (dtype.size() < 3 || std::string_view("<|>").find(dtype[0]) == std::string_view::npos) return 0;
  const char kind = dtype[1];
  if (std::string_view("biufcSUVmM").find(kind) == std::string_view::npos) return 0;
  std::size_t item = 0, at = 2;
  for (; at < dtype.size() && std::isdigit(static_cast<unsigned char>(dtype[at])) != 0; ++at) {
    if (at - 2 >= kMaxItemDigits) return 0;
    item = item * 10 + static_cast<std::size_t>(dtype[at] - '0');
  }
  if (at < dtype.size()) {
    const std::string_view unit = dtype.substr(at);
    const bool is_date = kind == 'm' || kind == 'M';
    const auto inside = [](unsigned char letter) { return std::isalnum(letter) != 0; };
    if (!is_date || unit.size() < 3 || unit.front() != '[' || unit.back() != ']' ||
        !std::all_of(unit.begin() + 1, unit.end() - 1, inside)) {
      return 0;
    }
  }
  return kind == 'U' ? item * 4 : item;
}

/// Computes the size of all elements. False: it exceeds the address space.
bool multiply(const std::vector<Py_ssize_t>& shape, std::size_t item_bytes, std::size_t& bytes) {
  bytes = item_bytes;
  for (const Py_ssize_t count : shape) {
    if (count < 0 || __builtin_mul_overflow(bytes, static_cast<std::size_t>(count), &bytes)) return false;
  }
  return bytes <= static_cast<std::size_t>(std::numeric_limits<Py_ssize_t>::max());
}

/// Objects of numpy, looked up once. Never destroyed, because the process may outlive the interpreter.
struct Numpy {
  nb::object ndarray = nb::module_::import_("numpy").attr("ndarray");
  nb::object dtype = nb::module_::import_("numpy").attr("dtype");
};
const Numpy& numpy() {
  static const Numpy* const found = new Numpy;
  return *found;
}

/// Numpy's built-in dtypes, by object and by name. Reading a dtype's attributes takes longer than sending a message.
/// Guarded by the GIL.
class BuiltinDtypes {
 public:
  struct Entry {
    nb::object dtype;
    std::string name;
    std::size_t item_bytes;
  };
  [[nodiscard]] static BuiltinDtypes& get() {
    static auto* const all = new BuiltinDtypes;
    return *all;
  }
  [[nodiscard]] const Entry* find(nb::handle dtype) const noexcept {
    const auto found =
        std::find_if(entries_.begin(), entries_.end(), [&](const Entry& one) { return one.dtype.is(dtype); });
    return found == entries_.end() ? nullptr : &*found;
  }
  [[nodiscard]] const Entry* find(std::string_view name) const noexcept {
    const auto found =
        std::find_if(entries_.begin(), entries_.end(), [&](const Entry& one) { return one.name == name; });
    return found == entries_.end() ? nullptr : &*found;
  }
  void add(nb::handle dtype, const ArrayType& type) {
    if (nb::cast<int>(dtype.attr("isbuiltin")) == 1 && find(type.dtype) == nullptr) {
      entries_.push_back({nb::borrow(dtype), type.dtype, type.item_bytes});
    }
  }

 private:
  std::vector<Entry> entries_;
};

/// Sets numpy's name of a dtype, and its element size.
void set_dtype(ArrayType& type, nb::handle dtype) {
  if (const BuiltinDtypes::Entry* const known = BuiltinDtypes::get().find(dtype)) {
    type.dtype = known->name;
    type.item_bytes = known->item_bytes;
    return;
  }
  type.dtype = nb::cast<std::string>(dtype.attr("str"));
  type.item_bytes = item_bytes_of(type.dtype);
  const bool is_plain = dtype.attr("fields").is_none() && dtype.attr("subdtype").is_none();
  if (!is_plain || type.item_bytes == 0 || type.dtype.size() >= sizeof(ArrayHeader::dtype)) {
    const std::string text = "arrays of dtype " + nb::cast<std::string>(nb::str(dtype)) +
                             " cannot be sent; use numbers, text or dates of fixed size, or send bytes";
    throw nb::type_error(text.c_str());
  }
  BuiltinDtypes::get().add(dtype, type);
}

void set_shape(ArrayType& type, nb::handle shape) {
  if (PyLong_Check(shape.ptr())) {
    type.shape = {nb::cast<Py_ssize_t>(shape)};
  } else {
    for (const nb::handle count : shape) type.shape.push_back(nb::cast<Py_ssize_t>(count));
  }
  std::size_t bytes = 0;
  if (type.shape.size() > layout::kArrayMaxDimensions) throw nb::type_error("an array has at most 8 dimensions");
  if (!multiply(type.shape, type.item_bytes, bytes)) throw nb::value_error("the shape is negative or too large");
}

}  // namespace

std::size_t ArrayType::bytes() const noexcept {
  std::size_t bytes = 0;
  (void)multiply(shape, item_bytes, bytes);
  return bytes;
}

std::string ArrayType::format() const {
  static constexpr std::pair<std::string_view, const char*> kCodes[] = {
      {"b1", "?"}, {"i1", "b"}, {"u1", "B"}, {"i2", "h"}, {"u2", "H"}, {"i4", "i"},  {"u4", "I"},
      {"i8", "q"}, {"u8", "Q"}, {"f2", "e"}, {"f4", "f"}, {"f8", "d"}, {"c8", "Zf"}, {"c16", "Zd"}};
  const std::string order = dtype[0] == '>' ? ">" : "";
  for (const auto& [name, code] : kCodes) {
    if (std::string_view(dtype).substr(1) == name) return order + code;
  }
  if (dtype[1] == 'S' || dtype[1] == 'V') return std::to_string(item_bytes) + (dtype[1] == 'S' ? "s" : "x");
  return "";
}

ArrayType type_from(nb::handle shape, nb::handle dtype) {
  ArrayType type;
  if (!dtype.is_none()) set_dtype(type, numpy().dtype(dtype));
  set_shape(type, shape);
  return type;
}

std::optional<ArrayType> type_of(nb::handle object) {
  if (PyBytes_Check(object.ptr()) || PyByteArray_Check(object.ptr()) || PyMemoryView_Check(object.ptr())) return {};
  if (!nb::isinstance(object, numpy().ndarray) && !nb::hasattr(object, "__array_interface__")) return {};
  ArrayType type;
  set_dtype(type, object.attr("dtype"));
  set_shape(type, object.attr("shape"));
  return type;
}

ArrayHeader header_of(const ArrayType& type) noexcept {
  ArrayHeader header{};
  header.version = layout::kArrayVersion;
  header.magic = layout::kArrayMagic;
  header.header_bytes = sizeof header;
  header.dimensions = static_cast<std::uint16_t>(type.shape.size());
  header.data_bytes = type.bytes();
  std::memcpy(header.dtype, type.dtype.data(), std::min(type.dtype.size(), sizeof header.dtype - 1));
  std::copy(type.shape.begin(), type.shape.end(), header.shape);
  return header;
}

std::optional<ReceivedArray> read_array(std::span<const std::byte> message) {
  ArrayHeader header{};
  if (message.size() < sizeof header) return ReceivedArray{};
  std::memcpy(&header, message.data(), sizeof header);
  if (header.magic != layout::kArrayMagic || header.version != layout::kArrayVersion) return ReceivedArray{};
  if (header.dimensions > layout::kArrayMaxDimensions || header.header_bytes < sizeof header ||
      header.header_bytes % 64 != 0 || header.header_bytes > message.size() ||
      header.dtype[sizeof header.dtype - 1] != '\0') {
    return {};
  }
  ArrayType type{.dtype = header.dtype, .shape = {}, .item_bytes = item_bytes_of(header.dtype)};
  for (std::size_t i = 0; i < header.dimensions; ++i) type.shape.push_back(static_cast<Py_ssize_t>(header.shape[i]));
  std::size_t bytes = 0;
  if (type.item_bytes == 0 || !multiply(type.shape, type.item_bytes, bytes)) return {};
  if (bytes != header.data_bytes || bytes > message.size() - header.header_bytes) return {};
  return ReceivedArray{.type = std::move(type), .offset = header.header_bytes};
}

nb::object without_dates(nb::handle array, const ArrayType& type) {
  const bool has_dates = type.dtype[1] == 'm' || type.dtype[1] == 'M';
  return has_dates ? nb::object(array.attr("view")("i8")) : nb::borrow(array);
}

nb::object array_over(const nb::object& owner, const ArrayType& type) {
  nb::list shape;
  for (const Py_ssize_t count : type.shape) shape.append(count);
  const BuiltinDtypes::Entry* const known = BuiltinDtypes::get().find(type.dtype);
  const nb::object dtype = known != nullptr ? known->dtype : nb::cast(type.dtype);
  return numpy().ndarray(nb::tuple(shape), dtype, owner);
}

ArrayBuffer::ArrayBuffer(ArrayType type, std::span<std::byte> data)
    : type_(std::move(type)), data_(data), strides_(type_.shape.size()), format_(type_.format()) {
  auto stride = static_cast<Py_ssize_t>(type_.item_bytes);
  for (std::size_t i = strides_.size(); i-- > 0;) {
    strides_[i] = stride;
    stride *= type_.shape[i];
  }
}

int ArrayBuffer::fill(Py_buffer* view, PyObject* owner, int flags, bool writable) noexcept {
  if ((flags & PyBUF_ND) != PyBUF_ND) {
    return PyBuffer_FillInfo(view, owner, data_.data(), static_cast<Py_ssize_t>(data_.size()), writable ? 0 : 1, flags);
  }
  const char* wrong = nullptr;
  if ((flags & PyBUF_WRITABLE) != 0 && !writable) wrong = "the message is read-only";
  if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && type_.shape.size() > 1)
    wrong = "the array is in C order, not Fortran order";
  if ((flags & PyBUF_FORMAT) != 0 && format_.empty()) wrong = "a buffer cannot have elements of this dtype; use .array";
  if (wrong != nullptr) {
    view->obj = nullptr;
    PyErr_SetString(PyExc_BufferError, wrong);
    return -1;
  }
  view->buf = data_.data();
  view->obj = Py_NewRef(owner);
  view->len = static_cast<Py_ssize_t>(data_.size());
  view->readonly = writable ? 0 : 1;
  view->itemsize = static_cast<Py_ssize_t>(type_.item_bytes);
  view->format = (flags & PyBUF_FORMAT) != 0 ? format_.data() : nullptr;
  view->ndim = static_cast<int>(type_.shape.size());
  view->shape = type_.shape.data();
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? strides_.data() : nullptr;
  view->suboffsets = nullptr;
  view->internal = nullptr;
  return 0;
}

}  // namespace wherry::python
