// SPDX-License-Identifier: Apache-2.0
#include "file/client/host_locks.hpp"

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

namespace wherry::file {

using layout::FileCall;
using layout::FileLock;

HostLocks::Opened HostLocks::open(Handle handle, std::uint32_t flags, std::shared_ptr<HeldLocks> held,
                                  std::uint64_t process) {
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return {.error = EBADF};
  // With a lent descriptor, writes would continue after the lock has ended with the server.
  if (const auto lent = link_.lent().find(handle)) file->end = lent->end();
  file->guarded = true;
  link_.lent().set(handle, nullptr);
  HostLink::Asked asked;
  asked.request.call = static_cast<std::uint32_t>(FileCall::open_locks);
  asked.request.flags = flags;
  asked.request.offset = process;
  layout::FileAnswer answer{};
  Opened opened;
  opened.error = link_.call(asked, file.get(), {}, &answer);
  if (opened.error != 0) return opened;
  auto made = std::make_shared<HostLink::File>();
  made->handle = answer.value;
  made->held = std::move(held);
  made->locked = file;
  opened.handle = link_.add(std::move(made));
  return opened;
}

int HostLocks::set(Handle locks, std::uint32_t flags, const FileLock& wanted) {
  const std::lock_guard lock(link_.mutex());
  const auto owner = link_.find(locks);
  if (owner == nullptr || owner->held == nullptr) return EBADF;
  HostLink::Asked asked;
  asked.request.call = static_cast<std::uint32_t>(FileCall::set_lock);
  asked.request.flags = flags;
  asked.request.mode = wanted.type;
  asked.request.offset = wanted.offset;
  asked.request.length = wanted.length;
  const int error = link_.call(asked, owner.get());
  if (error == 0 && (flags & layout::kFileLockGivesUp) == 0) owner->held->set(wanted);
  // flock(2) gives up the old lock before it requests the new one.
  if (error == EAGAIN && (flags & layout::kFileLockWhole) != 0) owner->held->set({});
  return error;
}

int HostLocks::get(Handle handle, FileLock& wanted) {
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return EBADF;
  HostLink::Asked asked;
  asked.request.call = static_cast<std::uint32_t>(FileCall::get_lock);
  asked.request.mode = wanted.type;
  asked.request.offset = wanted.offset;
  asked.request.length = wanted.length;
  FileLock found{};
  const int error = link_.call(asked, file.get(), std::as_writable_bytes(std::span(&found, 1)));
  if (error != 0) return error;
  constexpr auto kMostType = static_cast<std::uint32_t>(layout::FileLockType::write);
  if (found.type > kMostType || found.offset > INT64_MAX || found.length > INT64_MAX - found.offset) return EIO;
  wanted = found;
  return 0;
}

}  // namespace wherry::file
