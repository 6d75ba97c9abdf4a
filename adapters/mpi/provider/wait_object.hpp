// SPDX-License-Identifier: Apache-2.0
// A descriptor for poll and epoll, of a queue or a counter opened with FI_WAIT_FD: fi_poll(3), fi_trywait. Readable
// while one of the mailboxes has something, or what it belongs to has changed.
#pragma once

#include <memory>

#include <rdma/fi_eq.h>

namespace wherry::mpi {

class WaitObject {
 public:
  /// Null where the kind needs none. Throws Error.
  static std::unique_ptr<WaitObject> of(fi_wait_obj kind);
  /// Whether there is such a kind here.
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
  /// Locked: readable until lower().
  void raise() noexcept;
  void lower() noexcept;
  /// FI_GETWAIT and FI_GETWAITOBJ, of what has this object, or null.
  static int control(const WaitObject* object, int command, void* argument);

 private:
  int set_ = -1;
  int event_ = -1;
  bool raised_ = false;
};

}  // namespace wherry::mpi
