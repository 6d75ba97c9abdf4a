// SPDX-License-Identifier: Apache-2.0
#include "completion_queue.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "objects.hpp"

namespace wherry::mpi {
namespace {

constexpr std::size_t kSize = 1024;

// Each format begins with the members of the shorter ones.
std::size_t bytes_of(fi_cq_format format) {
  switch (format) {
    case FI_CQ_FORMAT_MSG:
      return sizeof(fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA:
      return sizeof(fi_cq_data_entry);
    case FI_CQ_FORMAT_TAGGED:
      return sizeof(fi_cq_tagged_entry);
    default:
      return sizeof(fi_cq_entry);
  }
}

CompletionQueue& queue_of(fid_cq* queue) { return *static_cast<CompletionQueue*>(queue); }

int close(fid_t handle) {
  CompletionQueue& queue = CompletionQueue::of(handle);
  if (queue.users > 0) return -FI_EBUSY;
  delete &queue;
  return 0;
}

ssize_t read(fid_cq* queue, void* buffer, std::size_t count) { return queue_of(queue).read(buffer, count, nullptr); }

ssize_t readfrom(fid_cq* queue, void* buffer, std::size_t count, fi_addr_t* sources) {
  return queue_of(queue).read(buffer, count, sources);
}

ssize_t readerr(fid_cq* queue, fi_cq_err_entry* entry, std::uint64_t /*flags*/) {
  return queue_of(queue).read_error(*entry);
}

ssize_t sread(fid_cq* queue, void* buffer, std::size_t count, const void* /*condition*/, int timeout) {
  return queue_of(queue).read_blocking(buffer, count, nullptr, timeout);
}

ssize_t sreadfrom(fid_cq* queue, void* buffer, std::size_t count, fi_addr_t* sources, const void* /*condition*/,
                  int timeout) {
  return queue_of(queue).read_blocking(buffer, count, sources, timeout);
}

int signal(fid_cq* queue) {
  queue_of(queue).signal();
  return 0;
}

const char* strerror(fid_cq* /*queue*/, int error, const void* /*data*/, char* buffer, std::size_t length) {
  const char* text = ::strerror(error);
  if (buffer == nullptr || length == 0) return text;
  std::snprintf(buffer, length, "%s", text);
  return buffer;
}

int control(fid_t handle, int command, void* argument) {
  return WaitObject::control(CompletionQueue::of(handle).wait_object(), command, argument);
}

fi_ops object_operations() {
  fi_ops result = closable(close);
  result.control = control;
  return result;
}
fi_ops object_calls = object_operations();
fi_ops_cq own_calls{sizeof(fi_ops_cq), read, readfrom, readerr, sread, sreadfrom, signal, strerror};

}  // namespace

CompletionQueue::CompletionQueue(Domain& domain, const fi_cq_attr& attributes, void* context)
    : fid_cq{{FI_CLASS_CQ, context, &object_calls}, &own_calls},
      domain_(domain),
      entry_bytes_(bytes_of(attributes.format)),
      size_(std::max(attributes.size, kSize)),
      wait_object_(WaitObject::of(attributes.wait_obj)),
      waiting_(domain.lock()) {
  ++domain_.users;
}

CompletionQueue::~CompletionQueue() { --domain_.users; }

CompletionQueue& CompletionQueue::of(fid_t handle) { return object_of<CompletionQueue, fid_cq>(handle); }

int CompletionQueue::open(Domain& domain, const fi_cq_attr* attributes, void* context, fid_cq** queue) {
  const fi_cq_attr wanted = attributes == nullptr ? fi_cq_attr{} : *attributes;
  if (!WaitObject::serves(wanted.wait_obj) || wanted.wait_cond != FI_CQ_COND_NONE) return -FI_ENOSYS;
  if (wanted.format > FI_CQ_FORMAT_TAGGED) return -FI_EINVAL;
  return guarded([&] {
    *queue = new CompletionQueue(domain, wanted, context);
    return 0;
  });
}

void* CompletionQueue::put(void* to, const Completion& completion) const {
  const fi_cq_tagged_entry entry{completion.context, completion.flags, completion.bytes,
                                 completion.buffer,  completion.data,  completion.tag};
  if (entry_bytes_ == sizeof entry) [[likely]] {
    std::memcpy(to, &entry, sizeof entry);
  } else {
    std::memcpy(to, &entry, entry_bytes_);
  }
  return static_cast<std::byte*>(to) + entry_bytes_;
}

// Stops at an error, which stays in the queue until fi_cq_readerr() takes it.
ssize_t CompletionQueue::take(void* buffer, std::size_t count, fi_addr_t* sources) {
  std::size_t taken = 0;
  for (const Completion& completion : entries_.all()) {
    if (taken == count || completion.error != 0) break;
    buffer = put(buffer, completion);
    if (sources != nullptr) sources[taken] = completion.source;
    ++taken;
  }
  if (taken == 0) return entries_.empty() ? -FI_EAGAIN : -FI_EAVAIL;
  entries_.drop(taken);
  return static_cast<ssize_t>(taken);
}

ssize_t CompletionQueue::read(void* buffer, std::size_t count, fi_addr_t* sources) {
  const std::lock_guard guard(domain_.lock());
  if (entries_.empty()) {
    bool moved = waiting_.look();
    if (entries_.empty() && !moved && waiting_.rest()) moved = waiting_.progress();
    if (!entries_.empty() || moved) waiting_.moved();
  }
  if (count == 0) return entries_.empty() || entries_.front().error == 0 ? -FI_EAGAIN : -FI_EAVAIL;
  return take(buffer, count, sources);
}

ssize_t CompletionQueue::read_blocking(void* buffer, std::size_t count, fi_addr_t* sources, int timeout) {
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> deadline;
  if (timeout >= 0) deadline = Clock::now() + std::chrono::milliseconds(timeout);
  const std::lock_guard guard(domain_.lock());
  while (true) {
    const bool moved = waiting_.progress();
    const ssize_t taken = take(buffer, count, sources);
    if (taken != -FI_EAGAIN) return taken;
    if (signaled_.exchange(false) || (deadline && Clock::now() >= *deadline)) return -FI_EAGAIN;
    if (!moved) waiting_.sleep_until(deadline);
  }
}

ssize_t CompletionQueue::read_error(fi_cq_err_entry& entry) {
  const std::lock_guard guard(domain_.lock());
  if (entries_.empty() || entries_.front().error == 0) return -FI_EAGAIN;
  const Completion& completion = entries_.front();
  entry.op_context = completion.context;
  entry.flags = completion.flags;
  entry.len = completion.bytes;
  entry.buf = completion.buffer;
  entry.data = completion.data;
  entry.tag = completion.tag;
  entry.olen = completion.missing;
  entry.err = completion.error;
  entry.prov_errno = completion.error;
  entry.err_data_size = 0;
  entries_.drop(1);
  return 1;
}

void CompletionQueue::signal() noexcept {
  signaled_.store(true);
  if (wait_object_ != nullptr) {
    const std::lock_guard guard(domain_.lock());
    wait_object_->raise();
  }
  waiting_.interrupt();
}

int CompletionQueue::try_wait() noexcept {
  const std::lock_guard guard(domain_.lock());
  if (!entries_.empty() || signaled_.exchange(false)) return -FI_EAGAIN;
  if (wait_object_ != nullptr) wait_object_->lower();
  return waiting_.may_sleep() && entries_.empty() ? 0 : -FI_EAGAIN;
}

}  // namespace wherry::mpi
