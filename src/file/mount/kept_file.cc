// SPDX-License-Identifier: Apache-2.0
#include "file/mount/kept_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "file/wire/status.hpp"

namespace wherry::file::mount {
namespace {

/// `parts` without the first `skip` bytes.
std::vector<iovec> parts_from(const std::vector<iovec>& parts, std::size_t skip) {
  std::vector<iovec> rest;
  for (const iovec& part : parts) {
    const std::size_t skipped = std::min(skip, part.iov_len);
    skip -= skipped;
    if (skipped == part.iov_len) continue;
    rest.push_back({static_cast<std::byte*>(part.iov_base) + skipped, part.iov_len - skipped});
  }
  return rest;
}

}  // namespace

bool KeptFile::ask(std::uint64_t client, const Identity& identity, const std::string& name) {
  const std::lock_guard turn(writing_);
  // Another call has already given it back.
  if (over_) return false;
  {
    const std::lock_guard lock(mutex_);
    identity_ = {.device = identity.device, .inode = identity.inode};
    number_ = buffer_.add_file(identity, name, file_.appends());
    if (!number_) return false;
  }
  layout::FileStatus status{};
  std::uint64_t room = 0;
  const Hosts::Use host = file_.file().use();
  if (host->writes().delegate(file_.file().handle(), client, status, room) != 0 || room == 0) return false;
  is_delegated_ = true;
  size_ = status.size;
  modified_ = nanoseconds_of(status.modified);
  buffer_.set_written(*number_, size_, modified_);
  const std::lock_guard lock(mutex_);
  identity_ = {.device = status.device, .inode = status.inode};
  room_ = room;
  end_ = status.size;
  group_ = status.group;
  // With these bits each write would have to check them first.
  const bool may_be_held = !recalled_ && (status.mode & (S_ISUID | S_ISGID)) == 0;
  // Another call may have begun to give it back.
  if (state_ == State::asking) state_ = may_be_held ? State::held : State::ending;
  return state_ == State::held;
}

/// Requires the lock. `done`: writes may be kept.
KeptFile::Why KeptFile::may_keep() const {
  if (recalled_) return Why::over;
  if (state_ == State::renewing) return Why::no_room;
  return state_ == State::held ? Why::done : Why::over;
}

/// Adds an empty record at the end. False: no memory.
bool KeptFile::make_room_for_record() {
  try {
    records_.emplace_back();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

KeptFile::Kept KeptFile::keep(std::uint64_t offset, std::span<const std::byte> from, const Writer& by) {
  const std::lock_guard lock(mutex_);
  Kept kept;
  if (const Why why = may_keep(); why != Why::done) return {.why = why};
  note_writer(by);
  const std::size_t asked = from.size();
  from = from.first(std::min<std::uint64_t>(asked, room_));
  const auto is_followed = [&](WriteBuffer::RecordNumber last) {
    return buffer_.offset(last) + buffer_.data(last).size() == offset;
  };
  if (is_open_ended_ && !records_.empty() && is_followed(records_.back().number) && bytes_ < most_)
    kept.bytes = buffer_.extend(records_.back().number, from);
  while (kept.bytes < from.size() && bytes_ + kept.bytes < most_) {
    const auto rest = from.subspan(kept.bytes);
    const auto piece = rest.first(std::min(rest.size(), WriteBuffer::kPiece));
    if (!add_record(offset + kept.bytes, piece)) break;
    kept.bytes += piece.size();
  }
  end_ = std::max(end_, offset + kept.bytes);
  count(kept);
  if (kept.bytes < asked) kept.why = kept.bytes < from.size() ? Why::full : Why::no_room;
  return kept;
}

/// Uses one record, so that a killed daemon leaves all of the append or nothing.
KeptFile::Kept KeptFile::append(std::span<const std::byte> from, const Writer& by,
                                const std::function<void(std::uint64_t)>& begin) {
  const std::lock_guard lock(mutex_);
  Kept kept;
  if (const Why why = may_keep(); why != Why::done) return {.why = why};
  if (from.size() > room_) return {.why = Why::no_room};
  if (bytes_ + from.size() > most_) return {.why = Why::full};
  note_writer(by);
  begin(end_);
  const bool extends_last = is_open_ended_ && !records_.empty() &&
                            buffer_.data(records_.back().number).size() + from.size() <= WriteBuffer::kPiece;
  if (extends_last)
    buffer_.extend(records_.back().number, from);
  else if (!add_record(end_, from))
    return {.why = Why::full};
  kept.bytes = from.size();
  end_ += from.size();
  count(kept);
  return kept;
}

/// False: no room.
bool KeptFile::add_record(std::uint64_t offset, std::span<const std::byte> from) {
  if (!make_room_for_record()) return false;
  const auto record = buffer_.add(*number_, offset, from);
  if (record)
    records_.back() = {.number = *record, .kept_at = Clock::now()};
  else
    records_.pop_back();
  is_open_ended_ = is_open_ended_ || record.has_value();
  return record.has_value();
}

/// Computed once per process: if a process changes its groups, the old ones count.
std::uint32_t KeptFile::drops_by(const Writer& by) {
  if (by.is_root()) return 0;
  if (by == last_writer_) return last_drops_;
  last_writer_ = by;
  last_drops_ = layout::kFileWriteByUser | (by.is_in_group(group_) ? 0 : layout::kFileWriteByOutsider);
  return last_drops_;
}

/// Call it before the write is kept, so that the next daemon drops the bits, too.
void KeptFile::note_writer(const Writer& by) {
  const std::uint32_t drops = drops_by(by);
  if ((drops & ~drops_) == 0) return;
  drops_ |= drops;
  buffer_.set_drops(*number_, sent_drops_ | drops_);
}

void KeptFile::count(Kept& kept) {
  const bool is_first = bytes_ == 0 && kept.bytes != 0;
  kept.wakes = is_first || (bytes_ < kSentFrom && bytes_ + kept.bytes >= kSentFrom);
  bytes_ += kept.bytes;
  kept_ += kept.bytes;
  room_ -= kept.bytes;
}

/// The first records that are contiguous in the file.
KeptFile::Batch KeptFile::next_batch() {
  Batch batch;
  const std::lock_guard lock(mutex_);
  for (const Record& record : records_) {
    const std::uint64_t offset = buffer_.offset(record.number);
    const auto data = buffer_.data(record.number);
    if (batch.records == 0) batch.offset = offset;
    if (offset != batch.offset + batch.bytes || batch.bytes + data.size() > kMostSent) break;
    batch.parts.push_back({const_cast<std::byte*>(data.data()), data.size()});
    batch.bytes += data.size();
    ++batch.records;
  }
  if (batch.records == 0) return batch;
  batch.drops = drops_;
  sent_drops_ = drops_;
  if (batch.records == records_.size()) {
    is_open_ended_ = false;
    drops_ = 0;
  }
  return batch;
}

bool KeptFile::write_some() {
  const std::lock_guard turn(writing_);
  return write_batch();
}

void KeptFile::write_all() {
  std::uint64_t all = 0;
  {
    const std::lock_guard lock(mutex_);
    all = kept_;
  }
  const std::lock_guard turn(writing_);
  const auto is_written = [&] {
    const std::lock_guard lock(mutex_);
    return written_ >= all;
  };
  while (!is_written() && write_batch()) continue;
}

/// Records an error, and the state of the server's file, before it removes the records. The daemon may be killed at any
/// instruction, and the next one compares the file with that state.
bool KeptFile::write_batch() {
  const Batch batch = next_batch();
  if (batch.records == 0) return false;
  buffer_.set_sending(*number_, true);
  if (const int error = send(batch); error != 0) fail(error);
  buffer_.set_written(*number_, size_, modified_);
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < batch.records; ++i) {
      buffer_.remove(records_.front().number);
      records_.pop_front();
    }
    bytes_ -= batch.bytes;
    written_ += batch.bytes;
    sent_drops_ = 0;
    buffer_.set_drops(*number_, drops_);
  }
  buffer_.set_sending(*number_, false);
  return true;
}

int KeptFile::send(const Batch& batch) {
  const Hosts::Use host = file_.file().use();
  const Host::Handle handle = file_.file().handle();
  std::size_t done = 0;
  while (done < batch.bytes) {
    const std::vector<iovec> parts = parts_from(batch.parts, done);
    HostWrites::Written written;
    if (is_delegated_)
      written = host->writes().write(handle, batch.offset + done, parts, batch.drops);
    else
      written.result = send_undelegated(batch.offset + done, parts);
    if (is_delegated_ && written.result.error == ENOLCK) {
      if (const int error = check_unchanged(batch, written.begun); error != 0) return error;
      is_delegated_ = false;
      const std::lock_guard lock(mutex_);
      state_ = State::ending;
      continue;
    }
    done += written.result.bytes;
    if (written.result.bytes == 0) return written.result.failed() ? written.result.error : EIO;
    size_ = std::max(size_, batch.offset + done);
    if (written.modified != 0) modified_ = written.modified;
  }
  if (!is_delegated_) note_status(batch.drops);
  return 0;
}

/// For requests whose answers lack the modification time, and which leave set-user-ID bits. Without this the next
/// daemon would consider these writes to be changes by others. So it does if the server does not answer.
void KeptFile::note_status(std::uint32_t drops) {
  layout::FileStatus now{};
  const Hosts::Use host = file_.file().use();
  if (host->status(file_.file().handle(), now) != 0) return;
  size_ = now.size;
  modified_ = nanoseconds_of(now.modified);
  drop_set_id_bits(*host.operator->(), file_.file().handle(), now.mode, drops);
}

/// Other processes may append meanwhile: kept appends go after their data, and do not replace it.
Result KeptFile::send_undelegated(std::uint64_t offset, std::span<const iovec> parts) {
  const Hosts::Use host = file_.file().use();
  const Host::Handle handle = file_.file().handle();
  if (!file_.appends()) return host->write(handle, offset, parts);
  std::vector<std::byte> data;
  for (const iovec& part : parts) {
    const auto* const bytes = static_cast<const std::byte*>(part.iov_base);
    data.insert(data.end(), bytes, bytes + part.iov_len);
  }
  return host->append_again(handle, offset, data);
}

/// The server was restarted, and does not know of the delegation. Kept data is written only if the file is unchanged,
/// or has only the beginning of the request that was in progress.
int KeptFile::check_unchanged(const Batch& batch, bool begun) {
  layout::FileStatus now{};
  if (const int error = file_.file().use()->status(file_.file().handle(), now); error != 0) return error;
  if (begun) return now.size >= size_ && now.size <= std::max(size_, batch.offset + batch.bytes) ? 0 : ESTALE;
  return now.size == size_ && nanoseconds_of(now.modified) == modified_ ? 0 : ESTALE;
}

void KeptFile::fail(int error) {
  file_.errors().note(error);
  for (const auto& other : nodes_.open_files(node_)) {
    if (other.get() != &file_) other->errors().note_other(error);
  }
  const std::lock_guard lock(mutex_);
  state_ = State::ending;
}

/// A restarted server may delegate the file anew: then its state is that of the answer.
void KeptFile::renew(std::uint64_t client, std::uint64_t wanted) {
  const std::lock_guard turn(writing_);
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::held || recalled_ || room_ >= wanted) return;
    state_ = State::renewing;
  }
  while (write_batch()) continue;
  layout::FileStatus status{};
  std::uint64_t room = 0;
  const Hosts::Use host = file_.file().use();
  if (is_delegated_ && host->writes().delegate(file_.file().handle(), client, status, room) != 0) room = 0;
  is_delegated_ = room != 0;
  if (is_delegated_) {
    size_ = status.size;
    modified_ = nanoseconds_of(status.modified);
    buffer_.set_written(*number_, size_, modified_);
  }
  const std::lock_guard lock(mutex_);
  if (state_ != State::renewing) return;
  state_ = is_delegated_ ? State::held : State::ending;
  room_ = room;
  end_ = size_;
}

void KeptFile::give_back(bool closes) {
  {
    const std::lock_guard lock(mutex_);
    state_ = State::ending;
  }
  const std::lock_guard turn(writing_);
  if (over_) return;
  while (write_batch()) continue;
  if (is_delegated_ && !closes) file_.file().use()->writes().give_back(file_.file().handle());
  if (number_) buffer_.remove_file(*number_);
  is_delegated_ = false;
  over_ = true;
}

bool KeptFile::recall(const FileIdentity& file) {
  const std::lock_guard lock(mutex_);
  if (identity_ != file) return false;
  recalled_ = true;
  return true;
}

void KeptFile::recall() {
  const std::lock_guard lock(mutex_);
  recalled_ = true;
}

void KeptFile::rename(const std::string& name) {
  const std::lock_guard turn(writing_);
  if (number_ && !over_) buffer_.rename(*number_, name);
}

KeptFile::Clock::time_point KeptFile::due() const {
  const std::lock_guard lock(mutex_);
  if (recalled_ || bytes_ >= kSentFrom) return {};
  return records_.empty() ? Clock::time_point::max() : records_.front().kept_at + kKeptFor;
}

bool KeptFile::is_recalled() const {
  const std::lock_guard lock(mutex_);
  return recalled_;
}

bool KeptFile::is_held() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::held || state_ == State::renewing;
}

}  // namespace wherry::file::mount
