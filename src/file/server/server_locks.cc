// SPDX-License-Identifier: Apache-2.0
// Lock calls. No call waits.
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
  auto made = LockDescription::open(file->backing->descriptor(), LockDescription::Descriptor::of_this_owner_alone,
                                    flags == layout::kFileLockWhole, terms_.read_only, std::make_shared<HeldLocks>());
  if (made == nullptr) {
    const int error = errno;
    return error == EAGAIN ? Outcome::of_lease() : Outcome{.error = error};
  }
  return {.value = room.add({.locks = std::move(made)})};
}

Outcome Calls::set_lock(const Request& request) {
  LockDescription* const locks = handles_.find_locks(request.header.handle);
  if (locks == nullptr) return {.error = EBADF};
  if (request.header.flags != (locks->is_whole() ? layout::kFileLockWhole : 0)) return {.error = EINVAL};
  const LockDescription::Answer answer = locks->set(lock_of(request.header));
  return answer.leased ? Outcome::of_lease() : Outcome{.error = answer.error};
}

Outcome Calls::get_lock(const Request& request) {
  FileLock lock = lock_of(request.header);
  const LockDescription* const locks = handles_.find_locks(request.header.handle);
  const OpenFile* const file = handles_.find(request.header.handle);
  if (locks == nullptr && file == nullptr) return {.error = EBADF};
  const int error = locks != nullptr ? locks->get(lock) : LockDescription::get(file->backing->descriptor(), lock);
  if (error != 0) return {.error = error};
  Outcome outcome;
  const auto bytes = std::as_bytes(std::span(&lock, 1));
  outcome.payload.assign(bytes.begin(), bytes.end());
  return outcome;
}

}  // namespace wherry::file
