// SPDX-License-Identifier: Apache-2.0
#include "adapters/scif/table.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "adapters/scif/socket.hpp"
#include "memory/arena.hpp"

namespace wherry::scif {
namespace {

constexpr std::size_t kEntriesPerBlock = 128;
constexpr std::size_t kBlocks = 8192;  ///< a million descriptors: more than the kernel lets a process have by default
using Entry = std::atomic<DescriptorEntry*>;
using Block = std::array<Entry, kEntriesPerBlock>;
std::array<std::atomic<Block*>, kBlocks> blocks;

std::atomic<bool> duplicates{false};

/// Guarded by its mutex, as are the writes of entries, DescriptorEntry::descriptors, and which endpoint is in which
/// slot.
struct Registry {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, DescriptorEntry*> by_socket;
  std::vector<DescriptorEntry*> spare;
  std::size_t slots = 0;
};
void before_fork();
void after_fork_in_parent();
void after_fork_in_child();

/// Never destroyed: other threads may be in calls when the process ends. A forked child finds it unlocked.
Registry& registry() {
  static auto* const all = new Registry;
  [[maybe_unused]] static const int handled = [] {
    memory::Arena::handle_forks();  // first, so that its locks, which calls take under the registry's, are taken last
    return ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  }();
  return *all;
}

void before_fork() { registry().mutex.lock(); }
void after_fork_in_parent() { registry().mutex.unlock(); }

/// The child has no other thread: no lock of a slot is held, and no endpoint in use.
void after_fork_in_child() {
  for (const auto& [socket, slot] : registry().by_socket) {
    for (BriefLock* lock : {&slot->table, &slot->sending, &slot->receiving}) lock->unlock();
    slot->endpoint->forget_parents();
  }
  registry().mutex.unlock();
}

std::atomic<Block*>* block_of(int fd) {
  const auto number = static_cast<std::size_t>(fd);
  return fd < 0 || number >= kBlocks * kEntriesPerBlock ? nullptr : &blocks[number / kEntriesPerBlock];
}

Entry& entry_in(Block& block, int fd) { return block[static_cast<std::size_t>(fd) % kEntriesPerBlock]; }

Entry* entry_of(int fd) {
  const std::atomic<Block*>* place = block_of(fd);
  Block* block = place == nullptr ? nullptr : place->load(std::memory_order_acquire);  // TABLE-BLOCK
  return block == nullptr ? nullptr : &entry_in(*block, fd);
}

/// To be called with the registry's lock, as are those that follow.
Entry& make_entry(int fd) {
  std::atomic<Block*>* place = block_of(fd);
  if (place == nullptr) throw Error(EMFILE, "open", "an endpoint", "");
  Block* block = place->load(std::memory_order_relaxed);
  if (block == nullptr) {
    block = new Block{};
    place->store(block, std::memory_order_release);  // TABLE-BLOCK release: the empty entries
  }
  return entry_in(*block, fd);
}

void enter(int fd, DescriptorEntry& slot) {
  Entry& entry = make_entry(fd);
  slot.descriptors.push_back(fd);
  entry.store(&slot, std::memory_order_release);  // TABLE-SLOT release: the slot
}

/// Puts another endpoint, or none, into the slot. Returns what was there.
Endpoint* replace(DescriptorEntry& slot, Endpoint* endpoint) {
  const std::lock_guard table(slot.table);
  const std::lock_guard sending(slot.sending);
  const std::lock_guard receiving(slot.receiving);
  return std::exchange(slot.endpoint, endpoint);
}

/// A descriptor that the endpoint has besides `released`; looks for those that the program made. -1: it has none.
int another(const DescriptorEntry& slot, int released) {
  const EndpointWaiter& line = slot.endpoint->line();
  for (const int fd : slot.descriptors) {
    if (fd != released && line.is(fd)) return fd;
  }
  const int unknown = descriptor_of(line.socket(), released);
  if (unknown >= 0) duplicates.store(true, std::memory_order_relaxed);
  return unknown;
}

/// Takes a descriptor from its endpoint. Returns that if it was the last: it can no longer be found.
std::unique_ptr<Endpoint> release(int fd, DescriptorEntry& slot) {
  if (slot_of(fd) == &slot) entry_of(fd)->store(nullptr, std::memory_order_relaxed);
  std::erase(slot.descriptors, fd);
  if (const int other = another(slot, fd); other >= 0) {
    slot.endpoint->go_by(other);
    return nullptr;
  }
  for (const int stale : slot.descriptors) entry_of(stale)->store(nullptr, std::memory_order_relaxed);
  slot.descriptors.clear();
  registry().by_socket.erase(slot.endpoint->line().socket());
  return std::unique_ptr<Endpoint>(replace(slot, nullptr));
}

/// Forgets that a descriptor was an endpoint's if it is no longer. Returns the endpoint if that was its last.
std::unique_ptr<Endpoint> forget(int fd) {
  DescriptorEntry* slot = slot_of(fd);
  return slot == nullptr || slot->endpoint->line().is(fd) ? nullptr : release(fd, *slot);
}

DescriptorEntry* slot_by_socket(int fd) {
  const auto found = registry().by_socket.find(inode_of(fd));
  return found == registry().by_socket.end() ? nullptr : found->second;
}

/// Wakes the calls that use an endpoint that was released, and waits for their end. To be called without the registry's
/// lock.
void await_users(const std::unique_ptr<Endpoint>& endpoint) {
  if (endpoint == nullptr) return;
  endpoint->wake_all();
  for (std::uint32_t users = endpoint->users.load(std::memory_order_acquire); users != 0;  // USERS
       users = endpoint->users.load(std::memory_order_acquire)) {                          // USERS
    endpoint->users.wait(users, std::memory_order_acquire);                                // USERS
  }
}

Use use(DescriptorEntry& slot) {
  const std::lock_guard lock(slot.table);
  Endpoint* endpoint = slot.endpoint;
  endpoint->users.store(endpoint->users.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return Use(slot, endpoint);
}

}  // namespace

DescriptorEntry* slot_of(int fd) {
  const Entry* entry = entry_of(fd);
  return entry == nullptr ? nullptr : entry->load(std::memory_order_acquire);  // TABLE-SLOT
}

DescriptorEntry& take_slot() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (all.spare.empty()) {
    all.spare.reserve(++all.slots);
    return *new DescriptorEntry;
  }
  DescriptorEntry* slot = all.spare.back();
  all.spare.pop_back();
  return *slot;
}

void give_back(DescriptorEntry& slot) noexcept {
  const std::lock_guard lock(registry().mutex);
  registry().spare.push_back(&slot);
}

void socket_changed(DescriptorEntry& slot, std::uint64_t before, std::uint64_t now) {
  const std::lock_guard lock(registry().mutex);
  registry().by_socket.erase(before);
  if (slot.endpoint != nullptr) registry().by_socket[now] = &slot;  // else another thread is closing it
}

Use::~Use() {
  if (endpoint_ == nullptr) return;
  // A closing thread may destroy it at once; to notify touches only the address.
  std::atomic<std::uint32_t>& users = endpoint_->users;
  slot_->table.lock();
  const std::uint32_t left = users.load(std::memory_order_relaxed) - 1;
  const bool awaited = left == 0 && slot_->endpoint != endpoint_;
  users.store(left, std::memory_order_release);  // USERS release: the uses of it; pairs with await_users()
  slot_->table.unlock();
  if (awaited) users.notify_all();
}

Use find(int fd) {
  DescriptorEntry* slot = slot_of(fd);
  if (slot == nullptr) return {};
  const std::lock_guard lock(slot->table);
  Endpoint* endpoint = slot->endpoint;
  if (endpoint == nullptr || slot_of(fd) != slot) return {};
  endpoint->users.store(endpoint->users.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return {*slot, endpoint};
}

bool has_duplicates() { return duplicates.load(std::memory_order_relaxed); }

Use find_by_socket(int fd) {
  std::unique_ptr<Endpoint> ended;
  Use found;
  {
    const std::lock_guard lock(registry().mutex);
    ended = forget(fd);
    if (DescriptorEntry* slot = slot_by_socket(fd); slot != nullptr) {
      if (slot_of(fd) != slot) {
        enter(fd, *slot);
        slot->endpoint->go_by(fd);
        duplicates.store(true, std::memory_order_relaxed);
      }
      found = use(*slot);
    }
  }
  await_users(ended);
  return found;
}

int add(Opened opened) {
  std::unique_ptr<Endpoint> ended;
  const int fd = opened.socket.get();
  {
    const std::lock_guard lock(registry().mutex);
    DescriptorEntry& slot = opened.endpoint->slot();
    make_entry(fd);
    slot.descriptors.reserve(1);
    registry().by_socket[opened.endpoint->line().socket()] = &slot;
    ended = forget(fd);
    enter(fd, slot);
    replace(slot, opened.endpoint.release());
    static_cast<void>(opened.socket.release());
  }
  await_users(ended);
  return fd;
}

int close_descriptor(int fd) {
  std::unique_ptr<Endpoint> forgotten;
  std::unique_ptr<Endpoint> last;
  int error = 0;
  {
    const std::lock_guard lock(registry().mutex);
    forgotten = forget(fd);
    DescriptorEntry* slot = slot_by_socket(fd);
    if (slot == nullptr) {
      error = what_is(fd);
    } else if (last = release(fd, *slot); last == nullptr) {
      ::close(fd);  // with the lock held: another thread may be about to ask whether its descriptor is the last
    }
  }
  await_users(forgotten);
  if (last != nullptr) {
    await_users(last);
    ::close(fd);
  }
  return error;
}

int what_is(int fd) { return ::fcntl(fd, F_GETFD) < 0 ? EBADF : ENOTTY; }

}  // namespace wherry::scif
