// SPDX-License-Identifier: Apache-2.0
// Locks on open files.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.hpp"
#include "file/client/host_exchange.hpp"

namespace wherry::file {

using layout::FileCall;
using layout::FileLock;

Host::Opened Host::open_locks(Handle handle, std::uint32_t flags, std::shared_ptr<HeldLocks> held) {
  const std::lock_guard lock(mutex_);
  const auto file = find(handle);
  if (file == nullptr) return {.error = EBADF};
  // By a descriptor of the server's that is lent, writes would go on when the lock has ended with the server.
  if (const auto lent = this->lent(handle)) file->end = lent->end();
  file->guarded = true;
  set_lent(handle, nullptr);
  Asked asked;
  asked.request.call = static_cast<std::uint32_t>(FileCall::open_locks);
  asked.request.flags = flags;
  layout::FileAnswer answer{};
  Opened opened;
  opened.error = call(asked, file.get(), {}, &answer);
  if (opened.error != 0) return opened;
  auto made = std::make_shared<File>();
  made->handle = answer.value;
  made->held = std::move(held);
  made->locked = file;
  opened.handle = add(std::move(made));
  return opened;
}

int Host::set_lock(Handle locks, std::uint32_t flags, const FileLock& wanted) {
  const std::lock_guard lock(mutex_);
  const auto owner = find(locks);
  if (owner == nullptr || owner->held == nullptr) return EBADF;
  Asked asked;
  asked.request.call = static_cast<std::uint32_t>(FileCall::set_lock);
  asked.request.flags = flags;
  asked.request.mode = wanted.type;
  asked.request.offset = wanted.offset;
  asked.request.length = wanted.length;
  const int error = call(asked, owner.get());
  if (error == 0) owner->held->set(wanted);
  // flock(2) gives up the lock that is to be changed before it asks for the other.
  if (error == EAGAIN && (flags & layout::kFileLockWhole) != 0) owner->held->set({});
  return error;
}

int Host::get_lock(Handle handle, FileLock& wanted) {
  const std::lock_guard lock(mutex_);
  const auto file = find(handle);
  if (file == nullptr) return EBADF;
  Asked asked;
  asked.request.call = static_cast<std::uint32_t>(FileCall::get_lock);
  asked.request.mode = wanted.type;
  asked.request.offset = wanted.offset;
  asked.request.length = wanted.length;
  FileLock found{};
  const int error = call(asked, file.get(), std::as_writable_bytes(std::span(&found, 1)));
  if (error != 0) return error;
  constexpr auto kMostType = static_cast<std::uint32_t>(layout::FileLockType::write);
  if (found.type > kMostType || found.offset > INT64_MAX || found.length > INT64_MAX - found.offset) return EIO;
  wanted = found;
  return 0;
}

/// On a new connection: another owner may have had each lock meanwhile, so none is asked for again.
void Host::give_up_locks() {
  bool lost = false;
  for (const std::shared_ptr<File>& owner : files_) {
    if (!owner || owner->held == nullptr) continue;
    owner->stale = true;
    if (!owner->held->any()) continue;
    owner->locked->stale = true;
    lost = true;
  }
  if (lost) log::write(log::Level::warning, "the host's server was started again: locks on its files are lost");
}

}  // namespace wherry::file
