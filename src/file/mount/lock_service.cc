// SPDX-License-Identifier: Apache-2.0
#include "file/mount/lock_service.hpp"

#include <sched.h>
#include <unistd.h>

namespace wherry::file::mount {

namespace {

/// Closes this thread's other descriptors, after giving it a descriptor table of its own. Does nothing if not
/// permitted.
void keep_only(int descriptor) {
  if (::unshare(CLONE_FILES) != 0) return;
  const auto number = static_cast<unsigned>(descriptor);
  if (number > 0) ::close_range(0, number - 1, 0);
  ::close_range(number + 1, ~0U, 0);
}

}  // namespace

void LockService::start(int device) {
  waits_.start();
  grants_.start([device] { keep_only(device); });
}

void LockService::stop() {
  waits_.stop();
  grants_.stop();
}

int LockService::set(NodeId node, const OpenFile& by, const LockRequest& wanted) {
  const Locks::Answer answer = locks_.set(node, by, wanted);
  if (answer.frees) waits_.retry_now(node);
  return answer.error;
}

void LockService::drop(NodeId node, std::uint64_t process) {
  if (locks_.drop(node, process)) waits_.retry_now(node);
}

void LockService::release(NodeId node, const OpenFile& by) {
  if (locks_.release(node, by)) waits_.retry_now(node);
}

}  // namespace wherry::file::mount
