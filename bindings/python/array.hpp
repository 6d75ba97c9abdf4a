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

/// What the elements of an array are, and how many there are in each dimension.
struct ArrayType {
  std::string dtype = "|u1";  ///< numpy's typestr
  std::vector<Py_ssize_t> shape;
  std::size_t item_bytes = 1;

  [[nodiscard]] std::size_t bytes() const noexcept;
  /// The struct module's code of an element, as a buffer's format; empty if it has none (a date).
  [[nodiscard]] std::string format() const;
};

/// An array's type, from a shape and a dtype as numpy takes them. Throws TypeError for dtypes of objects or fields, and
/// for more than 8 dimensions.
[[nodiscard]] ArrayType type_from(nanobind::handle shape, nanobind::handle dtype);
/// Of an ndarray; empty for any other buffer.
[[nodiscard]] std::optional<ArrayType> type_of(nanobind::handle object);

[[nodiscard]] layout::ArrayHeader header_of(const ArrayType& type) noexcept;

/// A message as it was received.
struct ReceivedArray {
  std::optional<ArrayType> type;  ///< empty: bytes without a header
  std::size_t offset = 0;         ///< of the elements
};
/// Reads the header, if there is one: copied once, then checked, because the peer may change it. Empty: it has a header
/// that makes no sense.
[[nodiscard]] std::optional<ReceivedArray> read_array(std::span<const std::byte> message);

/// An ndarray over a buffer, whose owner it keeps; not the buffer.
[[nodiscard]] nanobind::object array_over(const nanobind::object& owner, const ArrayType& type);
/// The array, or one of integers over the same memory if it has dates, which no buffer can have.
[[nodiscard]] nanobind::object without_dates(nanobind::handle array, const ArrayType& type);

/// Fills a buffer of an array's type for a consumer of Python's; 0, or -1 with an exception.
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
