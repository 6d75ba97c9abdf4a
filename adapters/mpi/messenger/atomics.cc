// SPDX-License-Identifier: Apache-2.0
#include "atomics.hpp"

#include <rdma/fi_domain.h>

#include <complex>
#include <cstring>
#include <type_traits>

namespace wherry::mpi {
namespace {

__extension__ using Signed128 = __int128;
__extension__ using Unsigned128 = unsigned __int128;

template <class T>
struct Traits {
  static constexpr bool kIsInteger = std::is_integral_v<T>;
  static constexpr bool kIsOrdered = std::is_arithmetic_v<T>;
};
template <>
struct Traits<Signed128> {
  static constexpr bool kIsInteger = true;
  static constexpr bool kIsOrdered = true;
};
template <>
struct Traits<Unsigned128> : Traits<Signed128> {};

/// The type in which sums and products wrap around. In T itself an overflow may be undefined.
template <class T>
struct Wrapping {
  using Type = T;
};
template <>
struct Wrapping<Signed128> {
  using Type = Unsigned128;
};
template <class T>
  requires std::is_integral_v<T>
struct Wrapping<T> {
  using Type = std::conditional_t<(sizeof(T) < sizeof(int)), unsigned, std::make_unsigned_t<T>>;
};

template <class T>
T sum(T a, T b) {
  using W = Wrapping<T>::Type;
  return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
}

template <class T>
T product(T a, T b) {
  using W = Wrapping<T>::Type;
  return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
}

template <class T>
bool is_set(T value) {
  return value != T{};
}

template <class T>
T truth(bool value) {
  return value ? T{1} : T{};
}

template <class T>
T combined_logically(unsigned action, T old, T operand) {
  if (action == FI_LOR) return truth<T>(is_set(old) || is_set(operand));
  if (action == FI_LAND) return truth<T>(is_set(old) && is_set(operand));
  return truth<T>(is_set(old) != is_set(operand));
}

template <class T>
T combined_bitwise(unsigned action, T old, T operand, T comparand) {
  switch (action) {
    case FI_BOR:
      return static_cast<T>(old | operand);
    case FI_BAND:
      return static_cast<T>(old & operand);
    case FI_BXOR:
      return static_cast<T>(old ^ operand);
    default:
      return static_cast<T>((operand & comparand) | (old & ~comparand));
  }
}

template <class T>
T combined_in_order(unsigned action, T old, T operand, T comparand) {
  switch (action) {
    case FI_MIN:
      return operand < old ? operand : old;
    case FI_MAX:
      return operand > old ? operand : old;
    case FI_CSWAP_LE:
      return comparand <= old ? operand : old;
    case FI_CSWAP_LT:
      return comparand < old ? operand : old;
    case FI_CSWAP_GE:
      return comparand >= old ? operand : old;
    default:
      return comparand > old ? operand : old;
  }
}

template <class T>
T combined(unsigned action, T old, T operand, T comparand) {
  switch (action) {
    case FI_SUM:
      return sum(old, operand);
    case FI_PROD:
      return product(old, operand);
    case FI_LOR:
    case FI_LAND:
    case FI_LXOR:
      return combined_logically(action, old, operand);
    case FI_ATOMIC_WRITE:
      return operand;
    case FI_CSWAP:
      return comparand == old ? operand : old;
    case FI_CSWAP_NE:
      return comparand != old ? operand : old;
    case FI_BOR:
    case FI_BAND:
    case FI_BXOR:
    case FI_MSWAP:
      if constexpr (Traits<T>::kIsInteger) return combined_bitwise(action, old, operand, comparand);
      return old;
    default:
      if constexpr (Traits<T>::kIsOrdered) return combined_in_order(action, old, operand, comparand);
      return old;
  }
}

template <class T>
T load(const std::byte* from, std::size_t index) {
  T value{};
  if (from != nullptr) std::memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void run(unsigned action, const AtomicOperands& at, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const T old = load<T>(at.target, i);
    if (!only_reads(action)) {
      const T changed = combined(action, old, load<T>(at.operand, i), load<T>(at.comparand, i));
      std::memcpy(at.target + i * sizeof(T), &changed, sizeof(T));
    }
    if (at.result != nullptr) std::memcpy(at.result + i * sizeof(T), &old, sizeof(T));
  }
}

/// The entry of a datatype that peers name by its number.
struct Datatype {
  std::size_t bytes;
  bool is_integer;
  bool is_ordered;
  void (*run)(unsigned action, const AtomicOperands& at, std::size_t count);
};

template <class T>
constexpr Datatype datatype() {
  return {sizeof(T), Traits<T>::kIsInteger, Traits<T>::kIsOrdered, run<T>};
}

constexpr Datatype kDatatypes[] = {
    datatype<std::int8_t>(),
    datatype<std::uint8_t>(),
    datatype<std::int16_t>(),
    datatype<std::uint16_t>(),
    datatype<std::int32_t>(),
    datatype<std::uint32_t>(),
    datatype<std::int64_t>(),
    datatype<std::uint64_t>(),
    datatype<float>(),
    datatype<double>(),
    datatype<std::complex<float>>(),
    datatype<std::complex<double>>(),
    datatype<long double>(),
    datatype<std::complex<long double>>(),
    datatype<Signed128>(),
    datatype<Unsigned128>(),
};
static_assert(FI_INT8 == 0 && FI_FLOAT == 8 && FI_FLOAT_COMPLEX == 10 && FI_LONG_DOUBLE == 12 && FI_INT128 == 14);
static_assert(sizeof(kDatatypes) / sizeof(kDatatypes[0]) == FI_UINT128 + 1);

bool needs_order(unsigned action) {
  return action == FI_MIN || action == FI_MAX || (action >= FI_CSWAP_LE && action <= FI_CSWAP_GT);
}

bool needs_bits(unsigned action) {
  return action == FI_BOR || action == FI_BAND || action == FI_BXOR || action == FI_MSWAP;
}

}  // namespace

std::size_t bytes_of_datatype(unsigned datatype) { return datatype > FI_UINT128 ? 0 : kDatatypes[datatype].bytes; }

bool compares(unsigned action) { return action >= FI_CSWAP && action <= FI_MSWAP; }

bool only_reads(unsigned action) { return action == FI_ATOMIC_READ; }

bool is_atomic(unsigned datatype, unsigned action, AtomicKind kind) {
  if (datatype > FI_UINT128 || action > FI_MSWAP) return false;
  if (compares(action) != (kind == AtomicKind::compare)) return false;
  if (only_reads(action) && kind == AtomicKind::base) return false;
  if (needs_order(action) && !kDatatypes[datatype].is_ordered) return false;
  return !needs_bits(action) || kDatatypes[datatype].is_integer;
}

void run_atomic(unsigned datatype, unsigned action, const AtomicOperands& operands, std::size_t count) {
  kDatatypes[datatype].run(action, operands, count);
}

}  // namespace wherry::mpi
