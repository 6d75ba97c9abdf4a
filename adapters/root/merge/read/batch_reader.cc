// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/read/batch_reader.hpp"

namespace wherry::merge {

BatchReader::BatchReader(unsigned threads) {
  for (unsigned i = 1; i < threads; ++i) threads_.emplace_back([this] { serve(); });
}

BatchReader::~BatchReader() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
}

void BatchReader::run(std::size_t count, const std::function<void(std::size_t)>& work) {
  if (threads_.empty() || count < 2) {
    for (std::size_t i = 0; i < count; ++i) work(i);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    count_ = count;
    work_ = &work;
    next_ = 0;
    busy_ = threads_.size();
    ++round_;
  }
  changed_.notify_all();
  work_off();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return busy_ == 0; });
}

void BatchReader::work_off() {
  for (std::size_t i = next_++; i < count_; i = next_++) (*work_)(i);
}

void BatchReader::serve() {
  std::size_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ending_ || round_ != seen; });
      if (ending_) return;
      seen = round_;
    }
    work_off();
    const std::lock_guard lock(mutex_);
    if (--busy_ == 0) changed_.notify_all();
  }
}

}  // namespace wherry::merge
