// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

namespace wherry::window {

/// Keeps memory that a fabric may still send from or receive into, because a flush timed out. Thread-safe.
class LateBuffers {
 public:
  using Buffer = std::shared_ptr<std::byte[]>;
  /// A buffer with a preallocated list node: made before the fabric gets the buffer, because keep() must not fail.
  class Slot {
   public:
    explicit Slot(Buffer buffer) { list_.push_back(std::move(buffer)); }
    [[nodiscard]] std::byte* bytes() const noexcept { return list_.front().get(); }

   private:
    friend class LateBuffers;
    std::list<Buffer> list_;  // one buffer; empty after keep()
  };

  LateBuffers() { (void)lost(); }
  LateBuffers(const LateBuffers&) = delete;
  LateBuffers& operator=(const LateBuffers&) = delete;
  /// The connection outlives this object, so the memory must, too. It is leaked, which is better than freed and used.
  ~LateBuffers() {
    Lost& place = lost();
    const std::lock_guard lock(place.mutex);
    place.buffers.splice(place.buffers.end(), buffers_);
  }

  void keep(Slot& slot) noexcept {
    const std::lock_guard lock(mutex_);
    buffers_.splice(buffers_.end(), slot.list_);
  }
  /// Frees the memory. Only after a complete flush, or once the connection is dead.
  void drop() noexcept {
    const std::lock_guard lock(mutex_);
    buffers_.clear();
  }

 private:
  struct Lost {
    std::mutex mutex;
    std::list<Buffer> buffers;
  };
  /// Made by the first constructor, because a destructor must not fail. Never destroyed.
  static Lost& lost() {
    static Lost& place = *new Lost;
    return place;
  }

  std::mutex mutex_;
  std::list<Buffer> buffers_;
};

}  // namespace wherry::window
