// SPDX-License-Identifier: Apache-2.0
// Locks: from libfuse's requests to Locks and LockWaits. The kernel has checked how the file is open.
//
// A lock is reported to its program only after the kernel has dropped its pages of the file. So the program reads
// what the last owner has written, also if both wrote within one tick of the clock for modification times.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "file/mount/operations_serve.hpp"

namespace wherry::file::mount {
namespace {

using layout::FileLockType;

FileLockType type_of_range(short type) {
  if (type == F_UNLCK) return FileLockType::none;
  return type == F_RDLCK ? FileLockType::read : FileLockType::write;
}

short range_type_of(std::uint32_t type) {
  if (type == static_cast<std::uint32_t>(FileLockType::none)) return F_UNLCK;
  return type == static_cast<std::uint32_t>(FileLockType::read) ? F_RDLCK : F_WRLCK;
}

/// libfuse has converted the kernel's range to an offset from the start of the file, and a length.
LockRequest request_of(const fuse_file_info* info, const struct flock& range) {
  return {.owner = info->lock_owner,
          .lock = {.offset = static_cast<std::uint64_t>(range.l_start),
                   .length = static_cast<std::uint64_t>(range.l_len),
                   .type = static_cast<std::uint32_t>(type_of_range(range.l_type)),
                   .reserved = 0},
          .process = range.l_pid};
}

void interrupt(fuse_req_t request, void* waits) { static_cast<LockWaits*>(waits)->interrupt(request); }

/// More attempts for a lock that is not waited for: within 7 ms and 1 ms. The kernel reports the last close of an open
/// file after the program has continued, so locks that end with it may still exist for a moment. Few range locks end
/// that way, and programs try them more often.
constexpr int kMoreWholeAttempts = 3;
constexpr int kMoreRangeAttempts = 1;

bool is_unlock(const LockRequest& wanted) { return wanted.lock.type == static_cast<std::uint32_t>(FileLockType::none); }

/// Whether the thread waits in fcntl(F_SETLKW). The request for F_OFD_SETLKW is the same. The owner of that may be
/// several threads, one of which may give up what another waits for, so it never returns EDEADLK. A thread whose call
/// is not known counts as waiting. The thread may be about to sleep: until it does, the kernel does not tell its call.
bool waits_as_process(pid_t thread) {
  constexpr auto kPause = std::chrono::microseconds(100);
  const std::string path = "/proc/" + std::to_string(thread) + "/syscall";
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (;;) {
    std::ifstream file(path);
    std::string number;
    file >> number;
    if (number == "running" && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(kPause);
      continue;
    }
    unsigned long descriptor = 0;
    unsigned long command = 0;
    if (!(file >> std::hex >> descriptor >> command)) return true;
    return number == std::to_string(SYS_fcntl) && command == F_SETLKW;
  }
}

/// Grants the lock once it is free. The open file stays until then: the kernel refers to it during the call.
void wait_for(FileSystem& system, fuse_req_t request, fuse_ino_t node, const OpenFile& file, LockRequest wanted,
              int attempts, LockWaits::Prepared prepared) {
  const auto grant = std::make_shared<LockWaits::Prepared>(std::move(prepared));
  LockWaits& waits = system.locks().waits();
  Locks& locks = system.locks().locks();
  const bool may_lock_up = attempts == 0 && !wanted.whole;
  wanted.waits = may_lock_up && waits_as_process(fuse_req_ctx(request)->pid);
  // A lock of an open file description waits even in a cycle, and is not recorded.
  if (may_lock_up && locks.begin_wait(request, node, wanted) != 0 && wanted.waits) {
    fuse_reply_err(request, EDEADLK);
    return;
  }
  const auto answer = [&system, &locks, request, node, wanted, grant](int error) {
    locks.end_wait(request);
    // Before the program continues.
    if (error != 0) locks.give_up(node, wanted);
    if (error == 0)
      system.locks().grants().hand_over(std::move(*grant));
    else
      fuse_reply_err(request, error);
  };
  const auto attempt = [&system, &locks, request, node, &file, wanted] {
    const int error = system.locks().set(node, file, wanted);
    if (error != EAGAIN || !locks.is_deadlocked(request)) return error;
    return wanted.waits ? EDEADLK : EAGAIN;
  };
  // Now the server looks for a cycle, too.
  if (const int error = wanted.waits ? attempt() : EAGAIN; error != EAGAIN) return answer(error);
  waits.add({.id = request, .node = node, .attempt = attempt, .answer = answer, .most_attempts = attempts},
            [&] { fuse_req_interrupt_func(request, interrupt, &waits); });
}

/// Tells the program of a granted lock.
LockWaits::Prepared grant_of(const FileSystem& system, fuse_req_t request, fuse_ino_t node) {
  return LockWaits::prepare({.node = node,
                             .attempt =
                                 [&system, node] {
                                   system.tree().drop(node, Kept::pages);
                                   return 0;
                                 },
                             .answer = [request](int result) { fuse_reply_err(request, result); }});
}

void set(fuse_req_t request, fuse_ino_t node, const fuse_file_info* info, const LockRequest& wanted, bool waits) {
  serve(request, [&](FileSystem& system) {
    const OpenFile& file = file_of(request, info);
    // The lock owner opens the file again.
    system.tree().write_behind().give_back(node);
    LockWaits::Prepared grant = grant_of(system, request, node);
    const int error = system.locks().set(node, file, wanted);
    if (error == EAGAIN) {
      const int more = wanted.whole ? kMoreWholeAttempts : kMoreRangeAttempts;
      wait_for(system, request, node, file, wanted, waits ? 0 : more, std::move(grant));
      return 0;
    }
    if (error != 0) return error;
    if (is_unlock(wanted))
      fuse_reply_err(request, 0);
    else
      system.locks().grants().hand_over(std::move(grant));
    return 0;
  });
}

void set_lock(fuse_req_t request, fuse_ino_t node, fuse_file_info* info, struct flock* range, int waits) {
  set(request, node, info, request_of(info, *range), waits != 0);
}

void lock_whole(fuse_req_t request, fuse_ino_t node, fuse_file_info* info, int operation) {
  const int asked = operation & ~LOCK_NB;
  const FileLockType type = asked == LOCK_UN   ? FileLockType::none
                            : asked == LOCK_SH ? FileLockType::read
                                               : FileLockType::write;
  const LockRequest wanted{.owner = info->lock_owner,
                           .whole = true,
                           .lock = {.offset = 0, .length = 0, .type = static_cast<std::uint32_t>(type), .reserved = 0}};
  set(request, node, info, wanted, (operation & LOCK_NB) == 0);
}

void get_lock(fuse_req_t request, fuse_ino_t node, fuse_file_info* info, struct flock* range) {
  serve(request, [&](FileSystem& system) {
    LockRequest lock = request_of(info, *range);
    const int error = system.locks().get(node, file_of(request, info), lock);
    if (error != 0) return error;
    struct flock found{};
    found.l_type = range_type_of(lock.lock.type);
    found.l_whence = SEEK_SET;
    found.l_start = static_cast<off_t>(lock.lock.offset);
    found.l_len = static_cast<off_t>(lock.lock.length);
    found.l_pid = lock.process;
    fuse_reply_lock(request, &found);
    return 0;
  });
}

}  // namespace

void set_lock_operations(fuse_lowlevel_ops& table) {
  table.getlk = get_lock;
  table.setlk = set_lock;
  table.flock = lock_whole;
}

}  // namespace wherry::file::mount
