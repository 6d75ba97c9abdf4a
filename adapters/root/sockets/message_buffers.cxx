// SPDX-License-Identifier: Apache-2.0
#include "message_buffers.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

namespace wherry::root {
namespace {

/// Limit of the bytes kept for later messages. Enough for a few threads that each handle one message at a time.
constexpr std::size_t kMostKept = std::size_t{32} << 20;

/// Precedes the bytes of the message. Its size keeps their alignment.
struct alignas(64) Head {
  std::size_t capacity;
};

class Kept {
 public:
  Head* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    // The most recently used buffer is in the CPU caches. One more than 4 times too large is kept for a larger message.
    const auto fits = [bytes](const Head* one) { return one->capacity >= bytes && one->capacity / 4 <= bytes; };
    const auto found = std::find_if(kept_.rbegin(), kept_.rend(), fits);
    if (found == kept_.rend()) return nullptr;
    Head* const head = *found;
    kept_.erase(std::prev(found.base()));
    bytes_ -= head->capacity;
    return head;
  }

  /// Keeps a buffer for later. False if that would exceed kMostKept.
  bool keep(Head* head) {
    const std::lock_guard lock(mutex_);
    if (head->capacity > kMostKept - bytes_) return false;
    kept_.push_back(head);
    bytes_ += head->capacity;
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<Head*> kept_;
  std::size_t bytes_ = 0;
};

Kept& kept() {
  static Kept& kept = *new Kept;  // never destroyed: messages may be deleted after main()
  return kept;
}

}  // namespace

char* take_message_buffer(std::size_t bytes) {
  Head* head = kept().take(bytes);
  if (head == nullptr) {
    // 1/8 more, as messages of one kind differ a little in size.
    const std::size_t capacity = bytes + bytes / 8;
    void* const memory = ::operator new(sizeof(Head) + capacity, std::align_val_t{alignof(Head)}, std::nothrow);
    if (memory == nullptr) return nullptr;
    head = new (memory) Head{capacity};
  }
  return reinterpret_cast<char*>(head + 1);
}

void give_back_message_buffer(char* buffer) {
  Head* const head = reinterpret_cast<Head*>(buffer) - 1;
  if (!kept().keep(head)) ::operator delete(head, std::align_val_t{alignof(Head)});
}

ReceivedMessage::~ReceivedMessage() { give_back_message_buffer(fReceived); }

}  // namespace wherry::root
