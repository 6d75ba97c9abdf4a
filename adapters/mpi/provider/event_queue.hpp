// SPDX-License-Identifier: Apache-2.0
// fi_eq(3). Endpoints without connections have no events, so a queue holds only what the application writes into it.
#pragma once

#include <rdma/fi_eq.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "domain.hpp"
#include "wait_object.hpp"

namespace wherry::mpi {

class EventQueue : public fid_eq {
 public:
  EventQueue(Fabric& fabric, fi_wait_obj wait, void* context);
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;
  ~EventQueue();

  static EventQueue& of(fid_t handle);
  static int open(Fabric& fabric, const fi_eq_attr* attributes, void* context, fid_eq** queue);

  ssize_t read(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags);
  ssize_t read_blocking(std::uint32_t* event, void* buffer, std::size_t length, int timeout, std::uint64_t flags);
  ssize_t write(std::uint32_t event, const void* buffer, std::size_t length);
  WaitObject* wait_object() { return wait_object_.get(); }
  /// fi_trywait. Returns 0 if the caller may sleep, else -FI_EAGAIN.
  int try_wait() noexcept;

 private:
  struct Event {
    std::uint32_t number;
    std::vector<std::byte> bytes;
  };
  ssize_t take(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags);

  Fabric& fabric_;
  std::mutex mutex_;
  std::condition_variable written_;
  std::deque<Event> events_;
  std::unique_ptr<WaitObject> wait_object_;
};

}  // namespace wherry::mpi
