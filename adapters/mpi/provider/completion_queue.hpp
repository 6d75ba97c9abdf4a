// SPDX-License-Identifier: Apache-2.0
// fi_cq(3): completions and errors in the order in which they happened. The queue grows without a limit, but while it
// is_full() sends and one-sided operations get -FI_EAGAIN.
#pragma once

#include <rdma/fi_eq.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "adapters/mpi/messenger/completion.hpp"
#include "domain.hpp"
#include "wait_object.hpp"
#include "waiting.hpp"

namespace wherry::mpi {

/// A queue in one vector. Programs usually take all entries; the next one then reuses the memory from its start.
class Completions {
 public:
  void push_back(const Completion& completion) { entries_.push_back(completion); }
  [[nodiscard]] const Completion& front() const { return entries_[taken_]; }
  /// All entries, in order.
  [[nodiscard]] std::span<const Completion> all() const { return std::span(entries_).subspan(taken_); }
  void drop(std::size_t count) {
    taken_ += count;
    if (taken_ == entries_.size()) {
      entries_.clear();
      taken_ = 0;
    } else if (taken_ >= kMostTaken) {
      entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(taken_));
      taken_ = 0;
    }
  }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const { return entries_.size() - taken_; }

 private:
  static constexpr std::size_t kMostTaken = 1024;

  std::vector<Completion> entries_;
  std::size_t taken_ = 0;
};

class CompletionQueue : public fid_cq {
 public:
  CompletionQueue(Domain& domain, const fi_cq_attr& attributes, void* context);
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;
  ~CompletionQueue();

  static CompletionQueue& of(fid_t handle);
  /// Returns 0 and sets *queue, or returns a negative error number.
  static int open(Domain& domain, const fi_cq_attr* attributes, void* context, fid_cq** queue);

  /// The caller holds the domain's lock.
  void write(const Completion& completion) {
    entries_.push_back(completion);
    if (wait_object_ != nullptr) wait_object_->raise();
  }
  [[nodiscard]] bool is_full() const { return entries_.size() >= size_; }
  Waiting& waiting() { return waiting_; }
  WaitObject* wait_object() { return wait_object_.get(); }
  Domain& domain() { return domain_; }
  int users = 0;  ///< endpoints that it is bound to

  ssize_t read(void* buffer, std::size_t count, fi_addr_t* sources);
  ssize_t read_blocking(void* buffer, std::size_t count, fi_addr_t* sources, int timeout);
  ssize_t read_error(fi_cq_err_entry& entry);
  void signal() noexcept;
  /// fi_trywait. Returns 0 if the caller may sleep, else -FI_EAGAIN.
  int try_wait() noexcept;

 private:
  ssize_t take(void* buffer, std::size_t count, fi_addr_t* sources);
  void* put(void* to, const Completion& completion) const;

  Domain& domain_;
  std::size_t entry_bytes_;
  std::size_t size_;
  Completions entries_;
  std::unique_ptr<WaitObject> wait_object_;
  Waiting waiting_;
  std::atomic<bool> signaled_{false};
};

}  // namespace wherry::mpi
