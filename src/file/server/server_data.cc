// SPDX-License-Identifier: Apache-2.0
// Reads and writes: between the file and the two rings, without a copy in between.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "file/server/server_session.hpp"
#include "file/wire/status.hpp"

namespace wherry::file {
namespace {

using layout::FileAnswer;
using layout::FileCall;
using layout::kFileWriteKept;

/// The client copies one piece out while the next is read from the file. The first pieces are smaller, so that the
/// client starts early.
constexpr std::size_t kFirstPiece = std::size_t{16} << 10;
constexpr std::size_t kMostPiece = std::size_t{64} << 10;

/// If other clients wait, pieces are large: each piece may have to wake its client.
constexpr std::size_t kCrowdedPiece = std::size_t{256} << 10;

/// With less space in the client's ring, a piece is read into a buffer and sent as space becomes free.
constexpr std::size_t kLeastInPlace = 4096;

/// Longest wait for a full ring before other clients are served. An awake client makes space sooner.
constexpr std::chrono::microseconds kFullRingTimeout{200};

/// A write that ends inside a page of the file makes the kernel read that page first. So all writes of a request except
/// the last end at a page boundary.
constexpr std::size_t kPage = 4096;

/// The parts of `regions` from `skip` on, in the kernel's form.
template <class Byte>
std::array<iovec, 2> parts_of(const BasicRegions<Byte>& regions, std::size_t skip, std::size_t bytes) {
  const std::size_t in_first = std::min(skip, regions.first.size());
  const auto first = regions.first.subspan(in_first, std::min(bytes, regions.first.size() - in_first));
  const auto second = regions.second.subspan(skip - in_first, bytes - first.size());
  const auto part = [](auto bytes_of) { return iovec{const_cast<std::byte*>(bytes_of.data()), bytes_of.size()}; };
  return {part(first), part(second)};
}

/// Whether the flags of a write are valid.
bool is_way_to_write(std::uint32_t flags) {
  constexpr std::uint32_t kAll = kFileWriteKept | layout::kFileWriteByUser | layout::kFileWriteByOutsider;
  return flags == 0 || ((flags & kFileWriteKept) != 0 && (flags & ~kAll) == 0);
}

void put(const Regions& regions, const FileAnswer& head) {
  const auto bytes = std::as_bytes(std::span(&head, 1));
  const std::size_t first = std::min(bytes.size(), regions.first.size());
  std::memcpy(regions.first.data(), bytes.data(), first);
  if (first < bytes.size()) std::memcpy(regions.second.data(), bytes.data() + first, bytes.size() - first);
}

}  // namespace

ServerSession::Step ServerSession::begin_read(OpenFile* file) {
  const layout::FileRequest& header = request_.header;
  int error = file == nullptr ? EBADF : calls_.refused(request_);
  if (error == 0 && header.offset > INT64_MAX - header.length) error = EINVAL;
  if (error != 0) {
    answer({.error = error});
    return Step::on;
  }
  backing_ = file->backing.get();
  offset_ = header.offset;
  left_ = header.length;
  moved_ = 0;
  state_ = State::reading;
  return Step::on;
}

/// Reads the next piece of the file straight into the client's ring, after its header.
ServerSession::Step ServerSession::read_piece() {
  const std::size_t want = std::min<std::uint64_t>(
      left_, crowded_ ? kCrowdedPiece : std::clamp<std::uint64_t>(moved_, kFirstPiece, kMostPiece));
  const std::size_t least = sizeof(FileAnswer) + std::min(want, kLeastInPlace);
  Regions regions = stream_.reserve(sizeof(FileAnswer) + want);
  if (regions.size() < least) {
    (void)stream_.wait_writable(least + kMostPiece, kFullRingTimeout);
    regions = stream_.reserve(sizeof(FileAnswer) + want);
    if (regions.size() < least) return read_small_piece(std::min(want, kLeastInPlace));
  }
  const std::size_t room = std::min(want, regions.size() - sizeof(FileAnswer));
  const auto parts = parts_of(regions, sizeof(FileAnswer), room);
  const ssize_t got = backing_->read(parts, offset_);
  if (got < 0) {
    answer({.error = errno});
    return Step::on;
  }
  const auto bytes = static_cast<std::size_t>(got);
  offset_ += bytes;
  moved_ += bytes;
  left_ -= bytes;
  const bool last = left_ == 0 || (bytes < room && is_end_of_file());
  put(regions, head_of(bytes, last));
  if (!stream_.commit(sizeof(FileAnswer) + bytes).ok()) return Step::over;
  turn_ -= std::min(turn_, bytes);
  pass(service_.at, last ? FaultPoint::answered : FaultPoint::piece_read);
  if (last) state_ = State::requests;
  return Step::on;
}

/// After a short read: the next byte may also be one that the disk cannot read. Then the next piece returns the error.
bool ServerSession::is_end_of_file() const {
  std::byte next{};
  const iovec room{&next, 1};
  return backing_->read(std::span(&room, 1), offset_) == 0;
}

/// For a nearly full ring: reads a small piece into `out_`, to be sent when there is space.
ServerSession::Step ServerSession::read_small_piece(std::size_t bytes) {
  out_.resize(sizeof(FileAnswer) + bytes);
  const iovec room{out_.data() + sizeof(FileAnswer), bytes};
  const ssize_t got = backing_->read(std::span(&room, 1), offset_);
  if (got < 0) {
    answer({.error = errno});
    return Step::on;
  }
  const auto count = static_cast<std::size_t>(got);
  offset_ += count;
  left_ -= count;
  const bool last = left_ == 0 || (count < bytes && is_end_of_file());
  const FileAnswer head = head_of(count, last);
  std::memcpy(out_.data(), &head, sizeof head);
  out_.resize(sizeof(FileAnswer) + count);
  turn_ -= std::min(turn_, count);
  if (last) state_ = State::requests;
  return Step::on;
}

ServerSession::Step ServerSession::begin_write(OpenFile* file) {
  const layout::FileRequest& header = request_.header;
  const bool append = static_cast<FileCall>(header.call) == FileCall::append;
  offset_ = header.offset;
  left_ = header.length;
  moved_ = 0;
  position_ = 0;
  error_ = calls_.refused(request_);
  if (error_ == 0 && file == nullptr) error_ = EBADF;
  if (error_ == 0 && (append ? header.flags != 0 : !is_way_to_write(header.flags))) error_ = EINVAL;
  const bool is_kept = (header.flags & kFileWriteKept) != 0;
  if (error_ == 0 && ((append != file->appends && !is_kept) || (!append && header.offset > INT64_MAX - header.length)))
    error_ = EINVAL;
  if (error_ == 0 && is_kept && file->backing->delegation() == nullptr) error_ = ENOLCK;
  backing_ = error_ == 0 ? file->backing.get() : nullptr;
  by_ = error_ == 0 ? file->by : nullptr;
  appends_ = error_ == 0 && file->appends;
  gathered_.clear();
  state_ = append ? State::gathering : State::writing;
  return Step::on;
}

/// Writes the data that has arrived straight out of this side's ring.
ServerSession::Step ServerSession::write_piece() {
  if (left_ == 0) {
    layout::FileStatus status{};
    const bool is_kept = backing_ != nullptr && (request_.header.flags & kFileWriteKept) != 0;
    if (is_kept && backing_->status(status) == 0) {
      position_ = nanoseconds_of(status.modified);
      if (moved_ != 0) backing_->drop_set_id(status.mode, request_.header.flags);
    }
    if (by_ != nullptr && error_ == 0 && (backing_->status(status) != 0 || (status.mode & (S_ISUID | S_ISGID)) != 0))
      position_ = layout::kFileHasSetId;
    if (by_ != nullptr && error_ == 0 && crowded_) position_ |= layout::kFileServerShared;
    answer({.error = error_, .value = moved_, .position = position_});
    return Step::on;
  }
  const ConstRegions seen = stream_.peek(left_);
  if (seen.empty()) return nothing_came();
  if (error_ == 0) write_pages(seen);
  if (error_ == ENOLCK && left_ == request_.header.length) look_for(seen.first);
  const std::size_t bytes = seen.size();
  if (!stream_.consume(bytes).ok()) return Step::over;
  left_ -= bytes;
  turn_ -= std::min(turn_, bytes);
  pass(service_.at, FaultPoint::piece_written);
  return Step::on;
}

/// For a repeated request: sets `position_` to 1 if the first attempt has written the beginning, up to the end of a
/// page.
void ServerSession::look_for(std::span<const std::byte> data) {
  const auto first = data.first(std::min<std::size_t>(data.size(), kPage - offset_ % kPage));
  position_ = request_.header.repeated != 0 && calls_.has(request_, first) ? 1 : 0;
}

/// Writes up to the last page boundary of the file, and keeps the rest until more data arrives.
void ServerSession::write_pages(const ConstRegions& seen) {
  const std::size_t total = gathered_.size() + seen.size();
  const std::size_t rest = seen.size() == left_ ? 0 : std::min<std::size_t>(total, (offset_ + total) % kPage);
  std::size_t done = 0;
  while (done < total - rest) {
    const std::size_t kept = std::min(done, gathered_.size());
    const auto parts = parts_of(seen, done - kept, total - rest - done - (gathered_.size() - kept));
    const std::array<iovec, 3> all{{{gathered_.data() + kept, gathered_.size() - kept}, parts[0], parts[1]}};
    const Grant::Use use(by_.get());
    if (!use) {
      error_ = ESTALE;
      return;
    }
    const ssize_t put = appends_ ? backing_->write_before_end(all, offset_) : backing_->write(all, offset_);
    if (put <= 0) {
      error_ = put < 0 ? errno : EIO;
      return;
    }
    done += static_cast<std::size_t>(put);
    offset_ += static_cast<std::uint64_t>(put);
    moved_ += static_cast<std::uint64_t>(put);
  }
  if (done != 0) gathered_.clear();
  for (const iovec& part : parts_of(seen, seen.size() - std::min(rest, seen.size()), std::min(rest, seen.size()))) {
    const auto* const bytes = static_cast<const std::byte*>(part.iov_base);
    gathered_.insert(gathered_.end(), bytes, bytes + part.iov_len);
  }
}

/// @param error  if not 0, the data is dropped, and this is the answer
ServerSession::Step ServerSession::begin_gathering(int error) {
  left_ = request_.header.length;
  error_ = error;
  gathered_.clear();
  state_ = State::gathering;
  return Step::on;
}

/// Gathers data that is used at once. An append is one write, so that appends by others come before or after it.
ServerSession::Step ServerSession::gather() {
  if (left_ == 0) {
    const bool appends = static_cast<FileCall>(request_.header.call) == FileCall::append;
    answer(error_ != 0 ? Outcome{.error = error_}
           : appends   ? calls_.append(request_, gathered_)
                       : calls_.set_xattr(request_, gathered_));
    gathered_.clear();
    return Step::on;
  }
  const ConstRegions seen = stream_.peek(left_);
  if (seen.empty()) return nothing_came();
  if (error_ == 0) {
    gathered_.insert(gathered_.end(), seen.first.begin(), seen.first.end());
    gathered_.insert(gathered_.end(), seen.second.begin(), seen.second.end());
  }
  if (!stream_.consume(seen.size()).ok()) return Step::over;
  left_ -= seen.size();
  turn_ -= std::min(turn_, seen.size());
  return Step::on;
}

}  // namespace wherry::file
