// SPDX-License-Identifier: Apache-2.0
// Reusable objects: messages need no allocation once as many objects exist as are in use at the same time. Each has a
// number by which a peer can name it; stale and invented numbers find nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace wherry::mpi {

/// Objects derive from Pooled and have reset(), which restores their initial state.
struct Pooled {
  std::uint32_t pool_index = 0;
  std::uint32_t pool_generation = 0;
  bool pool_taken = false;
};

template <class Object>
class Pool {
 public:
  /// Throws std::bad_alloc.
  Object& take() {
    if (free_.empty()) grow();
    Object& object = *objects_[free_.back()];
    free_.pop_back();
    object.reset();
    object.pool_taken = true;
    return object;
  }
  void give(Object& object) noexcept {
    object.pool_taken = false;
    ++object.pool_generation;
    free_.push_back(object.pool_index);
  }
  static std::uint64_t number_of(const Object& object) {
    return std::uint64_t{object.pool_generation} << 32 | object.pool_index;
  }
  /// Returns null if no object in use has this number.
  Object* find(std::uint64_t number) {
    const auto index = static_cast<std::uint32_t>(number);
    if (index >= objects_.size()) return nullptr;
    Object& object = *objects_[index];
    return object.pool_taken && number_of(object) == number ? &object : nullptr;
  }
  template <class Visit>
  void for_each_taken(Visit&& visit) {
    for (std::size_t i = 0; i < objects_.size(); ++i) {
      if (objects_[i]->pool_taken) visit(*objects_[i]);
    }
  }
  [[nodiscard]] std::size_t taken() const { return objects_.size() - free_.size(); }

 private:
  void grow() {
    auto object = std::make_unique<Object>();
    object->pool_index = static_cast<std::uint32_t>(objects_.size());
    objects_.push_back(std::move(object));
    free_.reserve(objects_.capacity());  // give() allocates nothing
    free_.push_back(objects_.back()->pool_index);
  }

  std::vector<std::unique_ptr<Object>> objects_;
  std::vector<std::uint32_t> free_;
};

}  // namespace wherry::mpi
