// SPDX-License-Identifier: Apache-2.0
// A thread pool that processes the elements of a batch, together with the caller.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace wherry::merge {

class BatchReader {
 public:
  /// Starts `threads` - 1 threads; the caller of run() is the last one.
  explicit BatchReader(unsigned threads);
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;
  ~BatchReader();

  /// Calls work(0) to work(count - 1), each once, and returns when all have returned. `work` must not throw.
  void run(std::size_t count, const std::function<void(std::size_t)>& work);

 private:
  void serve();
  void work_off();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t round_ = 0;
  std::size_t busy_ = 0;
  bool ending_ = false;
  std::size_t count_ = 0;
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::atomic<std::size_t> next_{0};
  std::vector<std::jthread> threads_;
};

}  // namespace wherry::merge
