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

constexpr std::size_t kDescriptorsPerBlock = 128;
constexpr std::size_t kBlocks = 8192;  ///< a million descriptors: more than the kernel lets a process have by default
using Reference = std::atomic<EndpointEntry*>;
using Block = std::array<Reference, kDescriptorsPerBlock>;
std::array<std::atomic<Block*>, kBlocks> blocks;

std::atomic<bool> duplicates{false};

/// Its mutex guards its members, the writes of references, EndpointEntry::descriptors, and which endpoint each entry
/// has.
struct Registry {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, EndpointEntry*> by_socket;
  std::vector<EndpointEntry*> spare;
  std::size_t entries = 0;
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

/// The child has no other thread: it releases the locks of all entries, and no endpoint is in use.
void after_fork_in_child() {
  for (const auto& [socket, entry] : registry().by_socket) {
    for (SpinLock* lock : {&entry->table, &entry->sending, &entry->receiving}) lock->unlock();
    entry->endpoint->forget_parents();
  }
  registry().mutex.unlock();
}

std::atomic<Block*>* block_of(int fd) {
  const auto number = static_cast<std::size_t>(fd);
  return fd < 0 || number >= kBlocks * kDescriptorsPerBlock ? nullptr : &blocks[number / kDescriptorsPerBlock];
}

Reference& reference_in(Block& block, int fd) { return block[static_cast<std::size_t>(fd) % kDescriptorsPerBlock]; }

Reference* reference_of(int fd) {
  const std::atomic<Block*>* place = block_of(fd);
  Block* block = place == nullptr ? nullptr : place->load(std::memory_order_acquire);  // TABLE-BLOCK
  return block == nullptr ? nullptr : &reference_in(*block, fd);
}

/// The caller holds the registry's lock, here and in the functions that follow.
Reference& make_reference(int fd) {
  std::atomic<Block*>* place = block_of(fd);
  if (place == nullptr) throw Error(EMFILE, "open", "an endpoint", "");
  Block* block = place->load(std::memory_order_relaxed);
  if (block == nullptr) {
    block = new Block{};
    place->store(block, std::memory_order_release);  // TABLE-BLOCK release: the empty references
  }
  return reference_in(*block, fd);
}

void enter(int fd, EndpointEntry& entry) {
  Reference& reference = make_reference(fd);
  entry.descriptors.push_back(fd);
  reference.store(&entry, std::memory_order_release);  // TABLE-ENTRY release: the entry
}

/// Puts another endpoint, or none, into the entry. Returns the previous one.
Endpoint* replace(EndpointEntry& entry, Endpoint* endpoint) {
  const std::lock_guard table(entry.table);
  const std::lock_guard sending(entry.sending);
  const std::lock_guard receiving(entry.receiving);
  return std::exchange(entry.endpoint, endpoint);
}

/// Returns a descriptor of the endpoint other than `released`, or -1. Finds also those that the program made.
int another(const EndpointEntry& entry, int released) {
  const EndpointWaiter& waiter = entry.endpoint->waiter();
  for (const int fd : entry.descriptors) {
    if (fd != released && waiter.is(fd)) return fd;
  }
  const int unknown = descriptor_of(waiter.socket(), released);
  if (unknown >= 0) duplicates.store(true, std::memory_order_relaxed);
  return unknown;
}

/// Removes a descriptor from its endpoint. If it was the last, returns the endpoint, which can no longer be found.
std::unique_ptr<Endpoint> release(int fd, EndpointEntry& entry) {
  if (entry_of(fd) == &entry) reference_of(fd)->store(nullptr, std::memory_order_relaxed);
  std::erase(entry.descriptors, fd);
  if (const int other = another(entry, fd); other >= 0) {
    entry.endpoint->go_by(other);
    return nullptr;
  }
  for (const int stale : entry.descriptors) reference_of(stale)->store(nullptr, std::memory_order_relaxed);
  entry.descriptors.clear();
  registry().by_socket.erase(entry.endpoint->waiter().socket());
  return std::unique_ptr<Endpoint>(replace(entry, nullptr));
}

/// Removes a descriptor that is no longer its endpoint's. If it was the last, returns the endpoint.
std::unique_ptr<Endpoint> forget(int fd) {
  EndpointEntry* entry = entry_of(fd);
  return entry == nullptr || entry->endpoint->waiter().is(fd) ? nullptr : release(fd, *entry);
}

EndpointEntry* entry_by_socket(int fd) {
  const auto found = registry().by_socket.find(inode_of(fd));
  return found == registry().by_socket.end() ? nullptr : found->second;
}

/// Wakes the calls that use an endpoint which was released, and waits for their end. The caller does not hold the
/// registry's lock.
void await_users(const std::unique_ptr<Endpoint>& endpoint) {
  if (endpoint == nullptr) return;
  endpoint->wake_all();
  for (std::uint32_t users = endpoint->users.load(std::memory_order_acquire); users != 0;  // USERS
       users = endpoint->users.load(std::memory_order_acquire)) {                          // USERS
    endpoint->users.wait(users, std::memory_order_acquire);                                // USERS
  }
}

Use use(EndpointEntry& entry) {
  const std::lock_guard lock(entry.table);
  Endpoint* endpoint = entry.endpoint;
  endpoint->users.store(endpoint->users.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return Use(entry, endpoint);
}

}  // namespace

EndpointEntry* entry_of(int fd) {
  const Reference* entry = reference_of(fd);
  return entry == nullptr ? nullptr : entry->load(std::memory_order_acquire);  // TABLE-ENTRY
}

EndpointEntry& take_entry() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (all.spare.empty()) {
    all.spare.reserve(++all.entries);
    return *new EndpointEntry;
  }
  EndpointEntry* entry = all.spare.back();
  all.spare.pop_back();
  return *entry;
}

void give_back(EndpointEntry& entry) noexcept {
  const std::lock_guard lock(registry().mutex);
  registry().spare.push_back(&entry);
}

void socket_changed(EndpointEntry& entry, std::uint64_t before, std::uint64_t now) {
  const std::lock_guard lock(registry().mutex);
  registry().by_socket.erase(before);
  if (entry.endpoint != nullptr) registry().by_socket[now] = &entry;  // else another thread is closing it
}

Use::~Use() {
  if (endpoint_ == nullptr) return;
  // A closing thread may destroy the endpoint at once; notify_all uses only the address.
  std::atomic<std::uint32_t>& users = endpoint_->users;
  entry_->table.lock();
  const std::uint32_t left = users.load(std::memory_order_relaxed) - 1;
  const bool awaited = left == 0 && entry_->endpoint != endpoint_;
  users.store(left, std::memory_order_release);  // USERS release: the uses of it; pairs with await_users()
  entry_->table.unlock();
  if (awaited) users.notify_all();
}

Use find(int fd) {
  EndpointEntry* entry = entry_of(fd);
  if (entry == nullptr) return {};
  const std::lock_guard lock(entry->table);
  Endpoint* endpoint = entry->endpoint;
  if (endpoint == nullptr || entry_of(fd) != entry) return {};
  endpoint->users.store(endpoint->users.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return {*entry, endpoint};
}

bool has_duplicates() { return duplicates.load(std::memory_order_relaxed); }

Use find_by_socket(int fd) {
  std::unique_ptr<Endpoint> ended;
  Use found;
  {
    const std::lock_guard lock(registry().mutex);
    ended = forget(fd);
    if (EndpointEntry* entry = entry_by_socket(fd); entry != nullptr) {
      if (entry_of(fd) != entry) {
        enter(fd, *entry);
        entry->endpoint->go_by(fd);
        duplicates.store(true, std::memory_order_relaxed);
      }
      found = use(*entry);
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
    EndpointEntry& entry = opened.endpoint->entry();
    make_reference(fd);
    entry.descriptors.reserve(1);
    registry().by_socket[opened.endpoint->waiter().socket()] = &entry;
    ended = forget(fd);
    enter(fd, entry);
    replace(entry, opened.endpoint.release());
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
    EndpointEntry* entry = entry_by_socket(fd);
    if (entry == nullptr) {
      error = what_is(fd);
    } else if (last = release(fd, *entry); last == nullptr) {
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
