// SPDX-License-Identifier: Apache-2.0
#include "adapters/scif/table.hpp"

#include <fcntl.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <new>

namespace wherry::scif {
namespace {

constexpr std::size_t kSlotsPerBlock = 128;
constexpr std::size_t kBlocks = 8192;  ///< a million descriptors: more than the kernel lets a process have by default
using Block = std::array<Slot, kSlotsPerBlock>;
std::array<std::atomic<Block*>, kBlocks> blocks;

std::atomic<Block*>* place_of(int descriptor) {
  const auto number = static_cast<std::size_t>(descriptor);
  return descriptor < 0 || number >= kBlocks * kSlotsPerBlock ? nullptr : &blocks[number / kSlotsPerBlock];
}

Slot& slot_in(Block& block, int descriptor) { return block[static_cast<std::size_t>(descriptor) % kSlotsPerBlock]; }

/// Nobody finds it any more; waits for those who have.
std::unique_ptr<Endpoint> retire(Endpoint* endpoint) {
  if (endpoint == nullptr) return nullptr;
  endpoint->wake_all();
  for (std::uint32_t users = endpoint->users.load(std::memory_order_acquire); users != 0;  // USERS
       users = endpoint->users.load(std::memory_order_acquire)) {                          // USERS
    endpoint->users.wait(users, std::memory_order_acquire);                                // USERS
  }
  return std::unique_ptr<Endpoint>(endpoint);
}

/// Puts another endpoint, or none, into the slot. Returns what was there.
Endpoint* replace(Slot& slot, Endpoint* endpoint) {
  const std::lock_guard table(slot.table);
  const std::lock_guard sending(slot.sending);
  const std::lock_guard receiving(slot.receiving);
  return std::exchange(slot.endpoint, endpoint);
}

}  // namespace

Slot* slot_of(int descriptor) {
  const std::atomic<Block*>* place = place_of(descriptor);
  Block* block = place == nullptr ? nullptr : place->load(std::memory_order_acquire);  // TABLE-BLOCK
  return block == nullptr ? nullptr : &slot_in(*block, descriptor);
}

Slot& make_slot(int descriptor) {
  std::atomic<Block*>* place = place_of(descriptor);
  if (place == nullptr) throw Error(EMFILE, "open", "an endpoint", "");
  Block* block = place->load(std::memory_order_acquire);  // TABLE-BLOCK
  if (block == nullptr) {
    auto fresh = std::make_unique<Block>();
    // TABLE-BLOCK: the block made here, or that of the thread that was first.
    if (place->compare_exchange_strong(block, fresh.get(), std::memory_order_acq_rel)) block = fresh.release();
  }
  return slot_in(*block, descriptor);
}

Use::~Use() {
  if (endpoint_ == nullptr) return;
  // Who is closing it may destroy it at once; to notify touches only the address.
  std::atomic<std::uint32_t>& users = endpoint_->users;
  slot_->table.lock();
  const std::uint32_t left = users.load(std::memory_order_relaxed) - 1;
  const bool awaited = left == 0 && slot_->endpoint != endpoint_;
  users.store(left, std::memory_order_release);  // USERS release: the uses of it; pairs with retire()
  slot_->table.unlock();
  if (awaited) users.notify_all();
}

Use find(int descriptor) {
  Slot* slot = slot_of(descriptor);
  if (slot == nullptr) return Use();
  const std::lock_guard lock(slot->table);
  Endpoint* endpoint = slot->endpoint;
  if (endpoint == nullptr) return Use();
  endpoint->users.store(endpoint->users.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return Use(*slot, endpoint);
}

int add(std::unique_ptr<Endpoint> endpoint) {
  const int descriptor = endpoint->descriptor();
  retire(replace(make_slot(descriptor), endpoint.release()));
  return descriptor;
}

std::unique_ptr<Endpoint> remove(int descriptor) {
  Slot* slot = slot_of(descriptor);
  return slot == nullptr ? nullptr : retire(replace(*slot, nullptr));
}

int what_is(int descriptor) { return ::fcntl(descriptor, F_GETFD) < 0 ? EBADF : ENOTTY; }

}  // namespace wherry::scif
