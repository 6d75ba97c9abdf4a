// SPDX-License-Identifier: Apache-2.0
// Sending and receiving data other than spans of bytes: an object of a trivially copyable type, such as a struct, or a
// contiguous range of such objects, such as std::vector<double>. Included by <wherry/stream.hpp>.
#pragma once

#include <wherry/require_cxx20.hpp>

#include <sys/uio.h>

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace wherry::plain {

template <class T>
inline constexpr bool kIsView = false;
template <class T, std::size_t Extent>
inline constexpr bool kIsView<std::span<T, Extent>> = true;
template <class Char, class Traits>
inline constexpr bool kIsView<std::basic_string_view<Char, Traits>> = true;

/// A type whose value is its bytes. Pointers, views and iovec are excluded: an address means nothing in another
/// process.
template <class T, class Object = std::remove_cv_t<std::remove_all_extents_t<T>>>
concept Value =
    std::is_trivially_copyable_v<Object> && !std::is_pointer_v<Object> && !std::is_member_pointer_v<Object> &&
    !std::is_null_pointer_v<Object> && !kIsView<Object> && !std::same_as<Object, iovec>;

template <class T>
concept Range = requires(T&& data) { std::span(std::forward<T>(data)); };
template <Range T>
using Element = std::remove_pointer_t<decltype(std::span(std::declval<T>()).data())>;

template <class T>
inline constexpr bool kIsSource = Value<T>;
template <class T>
  requires Range<const T&>
inline constexpr bool kIsSource<T> = Value<Element<const T&>>;

template <class T>
inline constexpr bool kIsPlace =
    std::is_lvalue_reference_v<T> && !std::is_const_v<std::remove_reference_t<T>> && Value<std::remove_reference_t<T>>;
template <Range T>
inline constexpr bool kIsPlace<T> = Value<Element<T>> && !std::is_const_v<Element<T>>;

/// Excludes the types that another overload of send takes.
template <class T>
concept Source =
    !std::convertible_to<const T&, std::span<const std::byte>> &&
    !std::convertible_to<const T&, std::span<const iovec>> && !std::convertible_to<const T&, std::string_view>;

/// Excludes the types that another overload of receive takes.
template <class T>
concept Place = !std::convertible_to<T, std::span<std::byte>> && !std::convertible_to<T, std::span<const iovec>>;

template <class T>
std::span<const std::byte> bytes_of(const T& data) noexcept {
  static_assert(kIsSource<T>,
                "wherry sends an object, or a contiguous range, of a trivially copyable type; no pointer");
  if constexpr (!kIsSource<T>) {
    return {};
  } else if constexpr (Range<const T&>) {
    return std::as_bytes(std::span(data));
  } else {
    return std::as_bytes(std::span(std::addressof(data), 1));
  }
}

template <class T>
std::span<std::byte> place_of(T&& data) noexcept {
  static_assert(kIsPlace<T>,
                "wherry receives into an object, or a contiguous range, of a trivially copyable type; "
                "not const, no pointer, no temporary");
  if constexpr (!kIsPlace<T>) {
    return {};
  } else if constexpr (Range<T>) {
    return std::as_writable_bytes(std::span(std::forward<T>(data)));
  } else {
    return std::as_writable_bytes(std::span(std::addressof(data), 1));
  }
}

/// For a pointer and a number of bytes.
template <class Size>
std::span<const std::byte> bytes_at(const void* data, Size bytes) noexcept {
  return {static_cast<const std::byte*>(data), static_cast<std::size_t>(bytes)};
}
template <class Size>
std::span<std::byte> place_at(void* data, Size bytes) noexcept {
  return {static_cast<std::byte*>(data), static_cast<std::size_t>(bytes)};
}

}  // namespace wherry::plain
