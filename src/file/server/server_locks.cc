// SPDX-License-Identifier: Apache-2.0
// Lock calls. No call waits.
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <span>
#include <utility>

#include "file/server/server_calls.hpp"

namespace wherry::file {
namespace {

using layout::FileLock;

FileLock lock_of(const layout::FileRequest& header) {
  return {.offset = header.offset, .length = header.length, .type = header.mode, .reserved = 0};
}

}  // namespace

Outcome Calls::open_locks(const Request& request) {
  const std::uint32_t flags = request.header.flags;
  if ((flags & ~layout::kFileLockWhole) != 0) return {.error = EINVAL};
  const OpenFile* const file = handles_.find(request.header.handle);
  if (file == nullptr) return {.error = EBADF};
  Handles::Room room(handles_);
  if (room.error() != 0) return {.error = room.error()};
  const bool whole = flags == layout::kFileLockWhole;
  const auto held = std::make_shared<HeldLocks>();
  const int descriptor = file->backing->descriptor();
  auto made = LockDescription::open(descriptor, LockDescription::Descriptor::of_this_owner_alone, whole,
                                    terms_.read_only, held);
  if (made == nullptr) {
    const int error = errno;
    return error == EAGAIN ? Outcome::of_lease() : Outcome{.error = error};
  }
  struct stat status{};
  const LockGraph::Process process{.client = client_, .number = request.header.offset};
  const bool is_known = !whole && graph_ != nullptr && process.client != 0 && process.number != 0;
  std::unique_ptr<LockGraph::Member> member;
  if (is_known && ::fstat(descriptor, &status) == 0) {
    const layout::FileIdentity identity{.device = status.st_dev, .inode = status.st_ino};
    member = std::make_unique<LockGraph::Member>(*graph_, process, identity, held);
  }
  return {.value = room.add({.locks = std::move(made), .waits = std::move(member)})};
}

Outcome Calls::set_lock(const Request& request) {
  const OpenFile* const owner = handles_.find_locks(request.header.handle);
  if (owner == nullptr) return {.error = EBADF};
  const FileLock wanted = lock_of(request.header);
  const std::uint32_t flags = request.header.flags;
  const std::uint32_t kind = owner->locks->is_whole() ? layout::kFileLockWhole : 0;
  const bool waits = kind == 0 && flags == layout::kFileLockWaits;
  const bool gives_up = kind == 0 && flags == layout::kFileLockGivesUp;
  if (flags != kind && !waits && !gives_up) return {.error = EINVAL};
  if (gives_up && owner->waits != nullptr) owner->waits->end_wait(wanted);
  if (gives_up) return {};
  const LockDescription::Answer answer = owner->locks->set(wanted);
  if (waits && owner->waits != nullptr) {
    if (answer.error == EAGAIN && !answer.leased && !owner->waits->wait(wanted)) return {.error = EDEADLK};
    if (answer.error != EAGAIN) owner->waits->end_wait(wanted);
  }
  return answer.leased ? Outcome::of_lease() : Outcome{.error = answer.error};
}

Outcome Calls::get_lock(const Request& request) {
  FileLock lock = lock_of(request.header);
  const OpenFile* const owner = handles_.find_locks(request.header.handle);
  const OpenFile* const file = handles_.find(request.header.handle);
  if (owner == nullptr && file == nullptr) return {.error = EBADF};
  const int error =
      owner != nullptr ? owner->locks->get(lock) : LockDescription::get(file->backing->descriptor(), lock);
  if (error != 0) return {.error = error};
  Outcome outcome;
  const auto bytes = std::as_bytes(std::span(&lock, 1));
  outcome.payload.assign(bytes.begin(), bytes.end());
  return outcome;
}

}  // namespace wherry::file
