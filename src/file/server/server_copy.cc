// SPDX-License-Identifier: Apache-2.0
// Copies between two files, in pieces, so that other clients get turns in between.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "file/server/server_session.hpp"
#include "file/wire/status.hpp"

namespace wherry::file {
namespace {

/// A piece takes about a millisecond, unless it waits for the disk.
constexpr std::uint64_t kMostCopied = std::uint64_t{1} << 20;

/// Checks for overlapping ranges of one file, and cuts `length` at the file's end. The kernel would do both, but sees
/// only one piece at a time.
int check_overlap(const Backing& one, std::uint64_t offset, const Backing& other, std::uint64_t other_offset,
                  std::uint64_t& length) {
  layout::FileStatus first{};
  layout::FileStatus second{};
  if (const int error = status_of(one.descriptor(), first); error != 0) return error;
  if (const int error = status_of(other.descriptor(), second); error != 0) return error;
  if (first.device != second.device || first.inode != second.inode) return 0;
  length = std::min(length, first.size - std::min(first.size, offset));
  return offset < other_offset + length && other_offset < offset + length ? EINVAL : 0;
}

}  // namespace

int Calls::plan_copy(const Request& request, CopyPlan& plan) {
  const layout::FileRequest& header = request.header;
  layout::FileCopy to{};
  if (const int error = refused(request); error != 0) return error;
  if (request.second.size() != sizeof to) return EINVAL;
  std::memcpy(&to, request.second.data(), sizeof to);
  const OpenFile* const from = handles_.find(header.handle);
  const OpenFile* const target = handles_.find(to.handle);
  if (from == nullptr || target == nullptr || target->appends) return EBADF;
  if (target->by != nullptr) return EACCES;
  if (header.offset > INT64_MAX - header.length || to.offset > INT64_MAX - header.length) return EINVAL;
  plan = {.from = from->backing.get(),
          .offset = header.offset,
          .to = target->backing.get(),
          .to_offset = to.offset,
          .length = header.length};
  return check_overlap(*plan.from, plan.offset, *plan.to, plan.to_offset, plan.length);
}

ServerSession::Step ServerSession::begin_copy() {
  CopyPlan plan{};
  if (const int error = calls_.plan_copy(request_, plan); error != 0) {
    answer({.error = error});
    return Step::on;
  }
  backing_ = plan.from;
  target_ = plan.to;
  offset_ = plan.offset;
  target_offset_ = plan.to_offset;
  left_ = plan.length;
  moved_ = 0;
  state_ = State::copying;
  return Step::on;
}

ServerSession::Step ServerSession::copy_piece() {
  // Stops if the client has died.
  if (moved_ != 0 && !stream_.try_receive(std::span<std::byte>()).ok()) return Step::over;
  const auto want = static_cast<std::size_t>(std::min(left_, kMostCopied));
  const ssize_t got = want == 0 ? 0 : backing_->copy(offset_, *target_, target_offset_, want);
  if (got <= 0) {
    answer({.error = got < 0 ? errno : 0, .value = moved_});
    return Step::on;
  }
  const auto bytes = static_cast<std::uint64_t>(got);
  offset_ += bytes;
  target_offset_ += bytes;
  moved_ += bytes;
  left_ -= bytes;
  turn_ -= std::min<std::uint64_t>(turn_, bytes);
  pass(service_.at, FaultPoint::piece_written);
  if (left_ == 0) answer({.value = moved_});
  return Step::on;
}

}  // namespace wherry::file
