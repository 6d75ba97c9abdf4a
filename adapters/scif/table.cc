// SPDX-License-Identifier: Apache-2.0
#include "adapters/scif/table.hpp"

#include <fcntl.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <new>

#include "arch/pause.hpp"

namespace wherry::scif {
namespace {

/// Held for a few instructions only.
class SpinLock {
 public:
  void lock() {
    while (held_.test_and_set(std::memory_order_acquire)) arch::pause();
  }
  void unlock() { held_.clear(std::memory_order_release); }

 private:
  std::atomic_flag held_;
};

struct Slot {
  SpinLock lock;
  Endpoint* endpoint = nullptr;
};

constexpr std::size_t kSlotsPerBlock = 1024;
constexpr std::size_t kBlocks = 1024;  ///< a million descriptors: more than the kernel lets a process have by default
using Block = std::array<Slot, kSlotsPerBlock>;
std::array<std::atomic<Block*>, kBlocks> blocks;

Slot* slot_of(int descriptor, bool make) {
  const auto number = static_cast<std::size_t>(descriptor);
  if (descriptor < 0 || number >= kBlocks * kSlotsPerBlock) return nullptr;
  std::atomic<Block*>& place = blocks[number / kSlotsPerBlock];
  Block* block = place.load(std::memory_order_acquire);
  if (block == nullptr && make) {
    auto fresh = std::make_unique<Block>();
    if (place.compare_exchange_strong(block, fresh.get(), std::memory_order_acq_rel)) block = fresh.release();
  }
  return block == nullptr ? nullptr : &(*block)[number % kSlotsPerBlock];
}

/// Nobody finds it any more; waits for those who have.
std::unique_ptr<Endpoint> retire(Endpoint* endpoint) {
  if (endpoint == nullptr) return nullptr;
  endpoint->wake_all();
  for (std::uint32_t users = endpoint->users.load(std::memory_order_acquire); users != 0;
       users = endpoint->users.load(std::memory_order_acquire)) {
    endpoint->users.wait(users, std::memory_order_acquire);
  }
  return std::unique_ptr<Endpoint>(endpoint);
}

}  // namespace

Use::~Use() {
  if (endpoint_ == nullptr) return;
  // Who is closing it may destroy it at once; to notify touches only the address.
  std::atomic<std::uint32_t>& users = endpoint_->users;
  if (users.fetch_sub(1, std::memory_order_acq_rel) == 1) users.notify_all();
}

Use find(int descriptor) {
  Slot* slot = slot_of(descriptor, false);
  if (slot == nullptr) return Use();
  slot->lock.lock();
  Endpoint* endpoint = slot->endpoint;
  if (endpoint != nullptr) endpoint->users.fetch_add(1, std::memory_order_relaxed);
  slot->lock.unlock();
  return Use(endpoint);
}

int add(std::unique_ptr<Endpoint> endpoint) {
  const int descriptor = endpoint->descriptor();
  Slot* slot = slot_of(descriptor, true);
  if (slot == nullptr) throw Error(EMFILE, "open", "an endpoint", "");
  slot->lock.lock();
  Endpoint* stale = std::exchange(slot->endpoint, endpoint.release());
  slot->lock.unlock();
  retire(stale);
  return descriptor;
}

std::unique_ptr<Endpoint> remove(int descriptor) {
  Slot* slot = slot_of(descriptor, false);
  if (slot == nullptr) return nullptr;
  slot->lock.lock();
  Endpoint* endpoint = std::exchange(slot->endpoint, nullptr);
  slot->lock.unlock();
  return retire(endpoint);
}

int what_is(int descriptor) { return ::fcntl(descriptor, F_GETFD) < 0 ? EBADF : ENOTTY; }

}  // namespace wherry::scif
