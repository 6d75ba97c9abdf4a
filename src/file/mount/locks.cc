// SPDX-License-Identifier: Apache-2.0
#include "file/mount/locks.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace wherry::file::mount {
namespace {

/// How often the server may be restarted between the two requests of a first lock.
constexpr int kAttempts = 8;

bool is_unlock(const layout::FileLock& lock) {
  return lock.type == static_cast<std::uint32_t>(layout::FileLockType::none);
}

/// Maps errors of making an owner at the server.
int lock_error_of(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE:
    case EACCES:
    case EPERM:
      return ENOLCK;
    default:
      return error;
  }
}

}  // namespace

std::shared_ptr<Locks::Owner> Locks::find(NodeId node, const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto owners = nodes_.find(node);
  if (owners == nodes_.end()) return nullptr;
  const auto found = owners->second.find(key);
  return found == owners->second.end() ? nullptr : found->second;
}

/// The kernel may reuse the number of an open file before it reports the last close of the old one. A flock owner never
/// has two open files, so the old file is closed. An owner of ranges may be a process with two descriptors.
std::shared_ptr<Locks::Owner> Locks::find_or_add(NodeId node, const Key& key, const OpenFile& by, pid_t process) {
  std::shared_ptr<Owner> closed;
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Owner>& owner = nodes_[node][key];
  const bool is_new = owner == nullptr || std::ranges::find(owner->used, &by) == owner->used.end();
  if (is_new && key.whole) closed = std::exchange(owner, nullptr);
  if (closed != nullptr) note_end(*closed);
  if (owner == nullptr) {
    owner = std::make_shared<Owner>();
    owner->number = ++last_;
  }
  owner->process = process;
  if (is_new) owner->used.push_back(&by);
  if (is_new) note_user(*owner, node, key, by);
  return owner;
}

Locks::Answer Locks::set(NodeId node, const OpenFile& by, const LockRequest& wanted) {
  const Key key{wanted.owner, wanted.whole};
  const auto owner = is_unlock(wanted.lock) ? find(node, key) : find_or_add(node, key, by, wanted.process);
  if (owner == nullptr) return {};
  const std::lock_guard turn(owner->mutex);
  const bool had = owner->held->any();
  const bool weakens = owner->held->weakened_by(wanted.lock);
  for (int i = 0; i < kAttempts; ++i) {
    const int error = set(*owner, by, wanted);
    if (error == 0) KeptState::Batch(keeping_.state).add_lock(owner->number, wanted.lock);
    if (error == 0) return {.frees = weakens};
    if (had && !owner->held->any()) KeptState::Batch(keeping_.state).add_lock(owner->number, {});
    // flock(2) gives up a lock that it cannot change.
    if (error != ESTALE || owner->file == nullptr || owner->held->any())
      return {.error = error, .frees = had && !owner->held->any()};
    // The server was restarted while nothing was locked.
    owner->file.reset();
  }
  return {.error = ENOLCK};
}

int Locks::set(Owner& owner, const OpenFile& by, const LockRequest& wanted) {
  if (owner.lost) return ESTALE;
  if (owner.own == nullptr && owner.file == nullptr) {
    if (is_unlock(wanted.lock)) return 0;
    if (const int error = open(owner, by, wanted); error != 0) return lock_error_of(error);
  }
  if (owner.own != nullptr) return owner.own->set(wanted.lock).error;
  const std::uint32_t flags = wanted.whole ? layout::kFileLockWhole : wanted.waits ? layout::kFileLockWaits : 0;
  return owner.file->use()->locks().set(owner.file->handle(), flags, wanted.lock);
}

void Locks::describe(Owner& owner, const LentFile& lent, bool whole, bool read_only, bool is_own) {
  const auto use =
      is_own ? LockDescription::Descriptor::of_this_owner_alone : LockDescription::Descriptor::of_others_too;
  auto made = LockDescription::open(lent.descriptor(), use, whole, read_only, owner.held);
  if (made != nullptr && budget_.take()) take_up(owner, std::move(made));
}

/// The supervisor gets the descriptor before it has a lock.
void Locks::take_up(Owner& owner, std::unique_ptr<LockDescription> made) {
  const KeptKey key{.kind = KeptKind::locks, .id = owner.number};
  KeptDescriptors* const kept = keeping_.descriptors;
  if (kept != nullptr) made->share([kept, key](int descriptor) { kept->keep(key, descriptor); });
  owner.own = {made.release(), [this, kept, key](LockDescription* ended) {
                 delete ended;  // NOLINT(cppcoreguidelines-owning-memory): of the pointer that this ends
                 if (kept != nullptr) kept->drop(key);
                 budget_.give_back(1);
               }};
}

void Locks::note_user(const Owner& owner, NodeId node, const Key& key, const OpenFile& by) {
  KeptState::Batch(keeping_.state)
      .add_locker({.head = {},
                   .number = owner.number,
                   .node = node,
                   .owner = key.owner,
                   .open = by.number(),
                   .process = static_cast<std::uint32_t>(owner.process),
                   .whole = key.whole ? 1U : 0U});
}

/// Call it before the owner's locks are given up.
void Locks::note_end(const Owner& owner) {
  KeptState::Batch(keeping_.state).add(layout::KeptWord::unlocker, owner.number);
}

bool Locks::were_lost(const KeptSnapshot& left, KeptDescriptors& kept, std::uint64_t open) {
  return std::ranges::any_of(left.lockers, [&](const auto& one) {
    return std::ranges::find(one.second.open, open) != one.second.open.end() && one.second.held->any() &&
           !kept.has({.kind = KeptKind::locks, .id = one.first});
  });
}

void Locks::restore(const KeptSnapshot& left, bool read_only, const std::function<OpenFile*(std::uint64_t)>& open) {
  for (const auto& [number, known] : left.lockers) {
    const auto owner = std::make_shared<Owner>();
    owner->number = number;
    owner->held = known.held;
    owner->process = static_cast<pid_t>(known.locker.process);
    for (const std::uint64_t file : known.open) {
      if (const OpenFile* const by = open(file); by != nullptr) owner->used.push_back(by);
    }
    const bool whole = known.locker.whole != 0;
    UniqueFd descriptor = keeping_.descriptors->take({.kind = KeptKind::locks, .id = number});
    owner->lost = !descriptor.valid() && known.held->any();
    if (descriptor.valid() && budget_.take())
      take_up(*owner, LockDescription::resume(std::move(descriptor), whole, read_only, known.held));
    nodes_[known.locker.node][{known.locker.owner, whole}] = owner;
    last_ = std::max(last_, number);
  }
}

/// Uses a lent descriptor if possible: such locks do not end with the server, and neither does access to the data.
int Locks::open(Owner& owner, const OpenFile& by, const LockRequest& wanted) {
  const bool whole = wanted.whole;
  const std::shared_ptr<const LentFile> own = by.file().use()->lend(by.file().handle());
  const auto& lent = own != nullptr ? own : by.lent();
  if (lent != nullptr) describe(owner, *lent, whole, by.file().use()->read_only(), own != nullptr);
  if (owner.own != nullptr) return 0;
  // The kernel would still move data after a lock is lost with the server.
  if (by.backing() != nullptr) return ENOLCK;
  int error = 0;
  owner.file = by.file().open_locks(whole ? layout::kFileLockWhole : 0, wanted.owner, owner.held, error);
  return error;
}

int Locks::get(NodeId node, const OpenFile& by, LockRequest& lock) {
  const Key key{lock.owner, lock.whole};
  const auto owner = find(node, key);
  int error = ESTALE;
  if (owner != nullptr) {
    const std::lock_guard turn(owner->mutex);
    if (owner->lost) return ESTALE;
    if (owner->own != nullptr) error = owner->own->get(lock.lock);
    if (owner->file != nullptr) error = owner->file->use()->locks().get(owner->file->handle(), lock.lock);
    if (error == ESTALE && owner->held->any()) return error;
  }
  // For an owner without locks, every lock conflicts.
  if (error == ESTALE) error = by.file().use()->locks().get(by.file().handle(), lock.lock);
  if (error == 0) lock.process = is_unlock(lock.lock) ? 0 : holder(node, key, lock.lock);
  return error;
}

pid_t Locks::holder(NodeId node, const Key& asking, const layout::FileLock& lock) {
  const std::lock_guard guard(mutex_);
  const auto owners = nodes_.find(node);
  if (owners == nodes_.end()) return 0;
  for (const auto& [key, owner] : owners->second) {
    if (key != asking && !key.whole && owner->held->overlap(lock)) return owner->process;
  }
  return 0;
}

/// The owners whose locks conflict with this one.
std::set<std::uint64_t> Locks::conflicting_owners(const Waiting& wait) const {
  std::set<std::uint64_t> found;
  const auto owners = nodes_.find(wait.node);
  if (owners == nodes_.end()) return found;
  for (const auto& [key, owner] : owners->second) {
    if (key.whole || key.owner == wait.owner) continue;
    if (owner->held->conflicts_with(wait.lock)) found.insert(key.owner);
  }
  return found;
}

bool Locks::closes_cycle(const Waiting& wait) const {
  std::set<std::uint64_t> seen;
  std::vector<Waiting> next{wait};
  while (!next.empty()) {
    const Waiting one = next.back();
    next.pop_back();
    for (const std::uint64_t owner : conflicting_owners(one)) {
      if (owner == wait.owner) return true;
      if (!seen.insert(owner).second) continue;
      for (const auto& [id, other] : waiting_) {
        if (other.owner == owner) next.push_back(other);
      }
    }
  }
  return false;
}

int Locks::begin_wait(const void* id, NodeId node, const LockRequest& wanted) {
  const Waiting wait{.node = node, .owner = wanted.owner, .lock = wanted.lock};
  const std::lock_guard lock(mutex_);
  if (closes_cycle(wait)) return EDEADLK;
  waiting_.emplace(id, wait);
  return 0;
}

void Locks::give_up(NodeId node, const LockRequest& wanted) {
  const auto owner = find(node, {wanted.owner, wanted.whole});
  if (owner == nullptr || !wanted.waits) return;
  const std::lock_guard turn(owner->mutex);
  if (owner->file != nullptr)
    (void)owner->file->use()->locks().set(owner->file->handle(), layout::kFileLockGivesUp, wanted.lock);
}

void Locks::end_wait(const void* id) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(id);
}

bool Locks::is_deadlocked(const void* id) {
  const std::lock_guard lock(mutex_);
  const auto found = waiting_.find(id);
  if (found == waiting_.end() || !closes_cycle(found->second)) return false;
  waiting_.erase(found);
  return true;
}

bool Locks::drop(NodeId node, std::uint64_t process) {
  std::unique_lock lock(mutex_);
  const auto owners = nodes_.find(node);
  if (owners == nodes_.end()) return false;
  const auto dropped = owners->second.extract(Key{process, false});
  if (owners->second.empty()) nodes_.erase(owners);
  if (!dropped.empty()) note_end(*dropped.mapped());
  lock.unlock();
  return !dropped.empty();
}

/// An owner stays while another open file with its number exists (find_or_add).
bool Locks::release(NodeId node, const OpenFile& by) {
  Owners ended;
  std::unique_lock lock(mutex_);
  const auto owners = nodes_.find(node);
  if (owners == nodes_.end()) return false;
  for (auto next = owners->second.begin(); next != owners->second.end();) {
    const auto owner = next++;
    auto& used = owner->second->used;
    if (std::erase(used, &by) == 0 || !used.empty()) continue;
    note_end(*owner->second);
    ended.insert(owners->second.extract(owner));
  }
  if (owners->second.empty()) nodes_.erase(owners);
  lock.unlock();
  return !ended.empty();
}

}  // namespace wherry::file::mount
