// SPDX-License-Identifier: Apache-2.0
// The header before the elements of an array in a message (docs/python-reference.md has it for other languages).
#pragma once

#include <cstddef>
#include <cstdint>

namespace wherry::python::layout {

inline constexpr std::uint32_t kArrayVersion = 1;
inline constexpr std::uint32_t kArrayMagic = 0x59525241;  ///< "ARRY"
inline constexpr std::size_t kArrayMaxDimensions = 8;

/// Little-endian. The elements follow in C order, without gaps.
struct ArrayHeader {
  std::uint32_t version;           // W: sender. kArrayVersion
  std::uint32_t magic;             // W: sender. kArrayMagic
  std::uint32_t header_bytes;      // W: sender. Where the elements begin: 128 in this version, a multiple of 64
  std::uint16_t dimensions;        // W: sender. 0 to kArrayMaxDimensions
  std::uint16_t reserved;          // W: sender. 0
  std::uint64_t data_bytes;        // W: sender. Of all elements
  char dtype[16];                  // W: sender. As numpy writes it: "<f8", "|u1", "<M8[ns]"; the rest is zeros
  unsigned char reserved_too[24];  // W: sender. 0
  std::uint64_t shape[kArrayMaxDimensions];  // W: sender. The rest is zeros
};
static_assert(sizeof(ArrayHeader) == 128 && alignof(ArrayHeader) == 8);
static_assert(offsetof(ArrayHeader, magic) == 4 && offsetof(ArrayHeader, header_bytes) == 8);
static_assert(offsetof(ArrayHeader, dimensions) == 12 && offsetof(ArrayHeader, data_bytes) == 16);
static_assert(offsetof(ArrayHeader, dtype) == 24 && offsetof(ArrayHeader, reserved_too) == 40);
static_assert(offsetof(ArrayHeader, shape) == 64);

}  // namespace wherry::python::layout
