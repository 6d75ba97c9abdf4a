// SPDX-License-Identifier: Apache-2.0
#include "file/mount/lock_service.hpp"

namespace wherry::file::mount {

void LockService::start() {
  waits_.start();
  grants_.start();
}

void LockService::stop() {
  waits_.stop();
  grants_.stop();
}

int LockService::set(NodeId node, const OpenFile& by, const LockRequest& wanted) {
  const Locks::Answer answer = locks_.set(node, by, wanted);
  if (answer.frees) waits_.hurry(node);
  return answer.error;
}

void LockService::drop(NodeId node, std::uint64_t process) {
  if (locks_.drop(node, process)) waits_.hurry(node);
}

void LockService::release(NodeId node, const OpenFile& by) {
  if (locks_.release(node, by)) waits_.hurry(node);
}

}  // namespace wherry::file::mount
