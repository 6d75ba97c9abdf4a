// SPDX-License-Identifier: Apache-2.0
// A descriptor for poll and epoll, of a queue or a counter opened with FI_WAIT_FD: fi_poll(3), fi_trywait. It is
// readable while a mailbox has something to do, or after its queue or counter has changed.
#pragma once

#include <memory>

#include <rdma/fi_eq.h>

namespace wherry::mpi {

class WaitObject {
 public:
  /// Returns null if the kind needs no object. Throws Error.
  static std::unique_ptr<WaitObject> of(fi_wait_obj kind);
  /// Whether this provider implements the kind.
  static bool serves(fi_wait_obj kind);

  /// Throws Error.
  WaitObject();
  WaitObject(const WaitObject&) = delete;
  WaitObject& operator=(const WaitObject&) = delete;
  ~WaitObject();

  [[nodiscard]] int descriptor() const { return set_; }
  /// Throws Error.
  void add(int descriptor);
  void remove(int descriptor) noexcept;
  /// The caller holds the owner's lock. Makes the descriptor readable until lower().
  void raise() noexcept;
  void lower() noexcept;
  /// FI_GETWAIT and FI_GETWAITOBJ. `object` is null if the queue or counter has none.
  static int control(const WaitObject* object, int command, void* argument);

 private:
  int set_ = -1;
  int event_ = -1;
  bool raised_ = false;
};

}  // namespace wherry::mpi
