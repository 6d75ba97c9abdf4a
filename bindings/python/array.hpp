// SPDX-License-Identifier: Apache-2.0
// Arrays in messages: their header, and numpy's names of types.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bindings/python/layout/array_header.hpp"

namespace wherry::python {

/// The element type of an array, and its shape.
struct ArrayType {
  std::string dtype = "|u1";  ///< numpy's typestr
  std::vector<Py_ssize_t> shape;
  std::size_t item_bytes = 1;

  [[nodiscard]] std::size_t bytes() const noexcept;
  /// The code of an element in the struct module, for the format of a buffer. Empty if there is none (a date).
  [[nodiscard]] std::string format() const;
};

/// The type of an array, from a shape and a dtype as numpy takes them. Throws TypeError for dtypes of objects or
/// fields, and for more than 8 dimensions.
[[nodiscard]] ArrayType type_from(nanobind::handle shape, nanobind::handle dtype);
/// The type of an ndarray. Empty for any other buffer.
[[nodiscard]] std::optional<ArrayType> type_of(nanobind::handle object);

[[nodiscard]] layout::ArrayHeader header_of(const ArrayType& type) noexcept;

/// A parsed message.
struct ReceivedArray {
  std::optional<ArrayType> type;  ///< empty: bytes without a header
  std::size_t offset = 0;         ///< of the elements
};
/// Reads the header of a message, if there is one. Copies it before the checks, because the peer may change it. Empty:
/// the header is invalid.
[[nodiscard]] std::optional<ReceivedArray> read_array(std::span<const std::byte> message);

/// An ndarray over the buffer of `owner`. It keeps the owner alive, but does not hold its buffer.
[[nodiscard]] nanobind::object array_over(const nanobind::object& owner, const ArrayType& type);
/// The array; if it has dates, an array of integers over the same memory, because no buffer can have dates.
[[nodiscard]] nanobind::object without_dates(nanobind::handle array, const ArrayType& type);

/// Fills a Py_buffer of an array's type for a consumer in Python. Returns 0, or -1 with an exception set.
class ArrayBuffer {
 public:
  ArrayBuffer(ArrayType type, std::span<std::byte> data);
  int fill(Py_buffer* view, PyObject* owner, int flags, bool writable) noexcept;
  [[nodiscard]] const ArrayType& type() const noexcept { return type_; }
  [[nodiscard]] std::span<std::byte> data() const noexcept { return data_; }

 private:
  ArrayType type_;
  std::span<std::byte> data_;
  std::vector<Py_ssize_t> strides_;
  std::string format_;
};

}  // namespace wherry::python
