// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <span>
#include <type_traits>

namespace wherry::topology {

/// A growing array that needs only the C library: this library is loaded into every process of a job, and must not
/// bring a C++ library besides the program's. If memory is short, is_whole() becomes false and elements are missing.
template <class T>
class List {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  List() = default;
  /// Makes `size` elements of zeros.
  explicit List(std::size_t size) noexcept { resize(size); }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() { std::free(data_); }

  void push(const T& element) noexcept {
    if (size_ == room_ && !reserve(room_ == 0 ? 16 : room_ * 2)) return;
    data_[size_++] = element;
  }
  [[nodiscard]] bool is_whole() const noexcept { return is_whole_; }
  [[nodiscard]] std::span<T> elements() noexcept { return {data_, size_}; }
  void shorten(std::size_t size) noexcept { size_ = size; }

 private:
  void resize(std::size_t size) noexcept {
    data_ = static_cast<T*>(std::calloc(size == 0 ? 1 : size, sizeof(T)));
    is_whole_ = data_ != nullptr;
    size_ = room_ = is_whole_ ? size : 0;
  }
  bool reserve(std::size_t room) noexcept {
    void* const larger = std::realloc(data_, room * sizeof(T));
    is_whole_ = is_whole_ && larger != nullptr;
    if (larger == nullptr) return false;
    data_ = static_cast<T*>(larger);
    room_ = room;
    return true;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
  bool is_whole_ = true;
};

}  // namespace wherry::topology
