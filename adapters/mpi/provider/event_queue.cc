// SPDX-License-Identifier: Apache-2.0
#include "event_queue.hpp"

#include <chrono>
#include <cstring>

#include "objects.hpp"

namespace wherry::mpi {
namespace {

EventQueue& queue_of(fid_eq* queue) { return *static_cast<EventQueue*>(queue); }

int close(fid_t handle) {
  delete &object_of<EventQueue, fid_eq>(handle);
  return 0;
}

ssize_t read(fid_eq* queue, std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags) {
  return queue_of(queue).read(event, buffer, length, flags);
}

ssize_t readerr(fid_eq* /*queue*/, fi_eq_err_entry* /*entry*/, std::uint64_t /*flags*/) { return -FI_EAGAIN; }

ssize_t write(fid_eq* queue, std::uint32_t event, const void* buffer, std::size_t length, std::uint64_t /*flags*/) {
  return queue_of(queue).write(event, buffer, length);
}

ssize_t sread(fid_eq* queue, std::uint32_t* event, void* buffer, std::size_t length, int timeout, std::uint64_t flags) {
  return queue_of(queue).read_blocking(event, buffer, length, timeout, flags);
}

const char* strerror(fid_eq* /*queue*/, int error, const void* /*data*/, char* /*buffer*/, std::size_t /*length*/) {
  return ::strerror(error);
}

int control(fid_t handle, int command, void* argument) {
  return WaitObject::control(EventQueue::of(handle).wait_object(), command, argument);
}

fi_ops object_operations() {
  fi_ops result = closable(close);
  result.control = control;
  return result;
}
fi_ops object_calls = object_operations();
fi_ops_eq own_calls{sizeof(fi_ops_eq), read, readerr, write, sread, strerror};

}  // namespace

EventQueue::EventQueue(Fabric& fabric, fi_wait_obj wait, void* context)
    : fid_eq{{FI_CLASS_EQ, context, &object_calls}, &own_calls}, fabric_(fabric), wait_object_(WaitObject::of(wait)) {
  ++fabric_.users;
}

EventQueue::~EventQueue() { --fabric_.users; }

EventQueue& EventQueue::of(fid_t handle) { return object_of<EventQueue, fid_eq>(handle); }

int EventQueue::open(Fabric& fabric, const fi_eq_attr* attributes, void* context, fid_eq** queue) {
  const fi_wait_obj wait = attributes == nullptr ? FI_WAIT_NONE : attributes->wait_obj;
  if (!WaitObject::serves(wait)) return -FI_ENOSYS;
  return guarded([&] {
    *queue = new EventQueue(fabric, wait, context);
    return 0;
  });
}

ssize_t EventQueue::write(std::uint32_t event, const void* buffer, std::size_t length) {
  return guarded([&] {
    const auto* bytes = static_cast<const std::byte*>(buffer);
    const std::lock_guard guard(mutex_);
    events_.push_back({event, {bytes, bytes + length}});
    written_.notify_one();
    if (wait_object_ != nullptr) wait_object_->raise();
    return static_cast<int>(length);
  });
}

int EventQueue::try_wait() noexcept {
  const std::lock_guard guard(mutex_);
  if (!events_.empty()) return -FI_EAGAIN;
  if (wait_object_ != nullptr) wait_object_->lower();
  return 0;
}

ssize_t EventQueue::take(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags) {
  if (events_.empty()) return -FI_EAGAIN;
  const Event& first = events_.front();
  const std::size_t bytes = first.bytes.size();
  if (bytes > length) return -FI_ETOOSMALL;
  *event = first.number;
  std::memcpy(buffer, first.bytes.data(), bytes);
  if ((flags & FI_PEEK) == 0) events_.pop_front();
  return static_cast<ssize_t>(bytes);
}

ssize_t EventQueue::read(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags) {
  const std::lock_guard guard(mutex_);
  return take(event, buffer, length, flags);
}

ssize_t EventQueue::read_blocking(std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                                  std::uint64_t flags) {
  std::unique_lock guard(mutex_);
  const auto is_there = [&] { return !events_.empty(); };
  if (timeout < 0) {
    written_.wait(guard, is_there);
  } else {
    written_.wait_for(guard, std::chrono::milliseconds(timeout), is_there);
  }
  return take(event, buffer, length, flags);
}

}  // namespace wherry::mpi
