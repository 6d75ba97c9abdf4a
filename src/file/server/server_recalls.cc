// SPDX-License-Identifier: Apache-2.0
// Delegation requests of clients.
#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "file/server/server_calls.hpp"

namespace wherry::file {
namespace {

/// Empty: the size is not a multiple of an identity's.
std::optional<std::vector<layout::FileIdentity>> identities_of(const Request& request) {
  std::vector<layout::FileIdentity> files(request.second.size() / sizeof(layout::FileIdentity));
  if (files.size() * sizeof(layout::FileIdentity) != request.second.size()) return {};
  if (!files.empty()) std::memcpy(files.data(), request.second.data(), request.second.size());
  return files;
}

}  // namespace

/// Reads the status after the delegation is granted, when the file no longer changes.
Outcome Calls::delegate(const Request& request) {
  const OpenFile* const file = handles_.find(request.header.handle);
  if (file == nullptr) return {.error = EBADF};
  const bool granted = delegations_.grant(request.header.offset, file->backing->descriptor());
  layout::FileStatus status{};
  if (const int error = file->backing->status(status); error != 0) return {.error = error};
  const auto bytes = std::as_bytes(std::span(&status, 1));
  return {.value = granted ? layout::kFileDelegationMs : 0, .payload = {bytes.begin(), bytes.end()}};
}

Outcome Calls::delegate_write(const Request& request) {
  const OpenFile* const file = handles_.find(request.header.handle);
  if (file == nullptr) return {.error = EBADF};
  Backing& backing = *file->backing;
  const int mode = ::fcntl(backing.descriptor(), F_GETFL) & O_ACCMODE;
  if (mode != O_WRONLY && mode != O_RDWR) return {.error = EBADF};
  if (!WriteDelegation::Change(backing.delegation()).is_allowed()) return {.error = ESTALE};
  const bool may_be_delegated = !file->appends || backing.may_write_before_end();
  if (backing.delegation() == nullptr && may_be_delegated)
    backing.set_delegation(delegations_.grant_write(request.header.offset, backing.descriptor()));
  const WriteDelegation* const writer = backing.delegation();
  const std::uint64_t room = writer != nullptr ? delegations_.reserve(*writer, backing.descriptor()) : 0;
  if (room == 0) backing.set_delegation(nullptr);
  layout::FileStatus status{};
  if (const int error = backing.status(status); error != 0) return {.error = error};
  const auto bytes = std::as_bytes(std::span(&status, 1));
  return {.value = room, .payload = {bytes.begin(), bytes.end()}};
}

Outcome Calls::return_write(const Request& request) {
  const OpenFile* const file = handles_.find(request.header.handle);
  if (file == nullptr) return {.error = EBADF};
  // A handle that was cut off stays cut off.
  if (!WriteDelegation::Change(file->backing->delegation()).is_allowed()) return {.error = ESTALE};
  file->backing->set_delegation(nullptr);
  return {};
}

Outcome Calls::give_back(const Request& request) {
  const auto files = identities_of(request);
  if (!files) return {.error = EINVAL};
  delegations_.give_back(request.header.offset, *files);
  return {};
}

Outcome Calls::acknowledge_recalls(const Request& request) {
  const auto files = identities_of(request);
  if (!files) return {.error = EINVAL};
  const auto held = delegations_.acknowledge(request.header.offset, *files);
  const auto bytes = std::as_bytes(std::span(held));
  return {.payload = {bytes.begin(), bytes.end()}};
}

}  // namespace wherry::file
