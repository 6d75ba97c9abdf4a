// SPDX-License-Identifier: Apache-2.0
#include "file/mount/kept_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "file/mount/fault_points.hpp"
#include "file/wire/status.hpp"

namespace wherry::file::mount {
namespace {

/// Pauses between two looks at a ring. After the longest one without a write, the program asks for the next look.
constexpr std::chrono::milliseconds kFirstLookPause{1};
constexpr std::chrono::milliseconds kLongestLookPause{50};

}  // namespace

KeptFile::KeptFile(WriteBuffer& buffer, const Nodes& nodes, NodeId node, OpenFile& file, std::size_t most)
    : buffer_(buffer),
      nodes_(nodes),
      node_(node),
      file_(file),
      most_(most),
      writer_(file,
              [this] {
                const std::lock_guard lock(mutex_);
                stop_keeping();
              }),
      records_(buffer, most) {}

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
  const std::uint64_t room = writer_.ask(client, status);
  if (room == 0) return false;
  note_server_state();
  const std::lock_guard lock(mutex_);
  identity_ = {.device = status.device, .inode = status.inode};
  room_ = room;
  end_ = status.size;
  drops_.set_group(status.group);
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

/// Requires the lock. The program may use the rest without asking.
std::uint64_t KeptFile::room_beside_ring() const {
  return ring_ == nullptr ? room_ : room_ - std::min(room_, ring_->expected());
}

KeptFile::Kept KeptFile::keep(std::uint64_t offset, std::span<const std::byte> from, const Writer& by) {
  const std::lock_guard lock(mutex_);
  Kept kept;
  if (const Why why = may_keep(); why != Why::done) return {.why = why};
  // The kernel has pages of the file now.
  if (ring_ != nullptr && file_.reads()) ring_->seal();
  if (!take_ring()) return {.why = why_not_taken()};
  note_writer(by);
  const std::size_t asked = from.size();
  from = from.first(std::min<std::uint64_t>(asked, room_beside_ring()));
  kept = add(offset, from);
  if (kept.bytes < asked) kept.why = kept.bytes < from.size() ? Why::full : Why::no_room;
  return kept;
}

/// Requires the lock. Keeps as many bytes as there is memory for.
KeptFile::Kept KeptFile::add(std::uint64_t offset, std::span<const std::byte> from) {
  const std::size_t before = records_.bytes();
  Kept kept{.bytes = records_.add(*number_, offset, from)};
  const std::size_t after = records_.bytes();
  kept.wakes = (before == 0 && after != 0) || (before < kSentFrom && after >= kSentFrom);
  if (kept.bytes != 0) end_ = std::max(end_, offset + kept.bytes);
  kept_ += kept.bytes;
  room_ -= std::min<std::uint64_t>(room_, kept.bytes);
  pass(FaultPoint::write_kept);
  return kept;
}

/// Uses one record, so that a killed daemon leaves all of the append or nothing.
KeptFile::Kept KeptFile::append(std::span<const std::byte> from, const Writer& by,
                                const std::function<void(std::uint64_t)>& begin) {
  const std::lock_guard lock(mutex_);
  if (const Why why = may_keep(); why != Why::done) return {.why = why};
  // The program would not know of the new end.
  if (ring_ != nullptr) ring_->seal();
  if (!take_ring()) return {.why = why_not_taken()};
  if (from.size() > room_beside_ring()) return {.why = Why::no_room};
  if (!records_.begin_whole(from.size())) return {.why = Why::full};
  note_writer(by);
  begin(end_);
  const Kept kept = add(end_, from);
  return kept.bytes < from.size() ? Kept{.why = Why::full} : kept;
}

/// Call it before the write is kept, so that the next daemon drops the bits, too.
void KeptFile::note_writer(const Writer& by) {
  if (drops_.note(by)) buffer_.set_drops(*number_, drops_.unwritten());
}

bool KeptFile::write_some() {
  const std::lock_guard turn(writing_);
  return write_batch();
}

void KeptFile::write_all() {
  empty_ring();
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

bool KeptFile::write_batch() {
  KeptRecords::Batch batch;
  {
    const std::lock_guard lock(mutex_);
    batch = records_.next();
    if (batch.records == 0) return false;
    batch.write.drops = drops_.begin_sending(batch.is_all);
  }
  send(batch.write);
  {
    const std::lock_guard lock(mutex_);
    records_.remove(batch);
    written_ += batch.write.bytes;
    drops_.end_sending();
    buffer_.set_drops(*number_, drops_.unwritten());
  }
  pass(FaultPoint::batch_removed);
  buffer_.set_sending(*number_, false);
  return true;
}

/// Requires `writing_`. Records an error, and the state of the server's file, before the caller removes what was sent.
/// The daemon may be killed at any instruction, and the next one compares the file with that state.
void KeptFile::send(const DelegatedWriter::Write& write) {
  buffer_.set_sending(*number_, true);
  if (const int error = writer_.write(write); error != 0) fail(error);
  pass(FaultPoint::batch_written);
  note_server_state();
  pass(FaultPoint::batch_noted);
}

void KeptFile::note_server_state() { buffer_.set_written(*number_, writer_.size(), writer_.modified()); }

void KeptFile::fail(int error) {
  file_.errors().note(error);
  for (const auto& other : nodes_.open_files(node_)) {
    if (other.get() != &file_) other->errors().note_other(error);
  }
  const std::lock_guard lock(mutex_);
  stop_keeping();
}

/// Requires the lock.
void KeptFile::stop_keeping() {
  state_ = State::ending;
  if (ring_ != nullptr) ring_->seal();
}

/// A restarted server may delegate the file anew: then its state is that of the answer.
void KeptFile::renew(std::uint64_t client, std::uint64_t wanted) {
  const std::lock_guard turn(writing_);
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::held || recalled_ || room_beside_ring() >= wanted) return;
    state_ = State::renewing;
    take_ring();
  }
  while (write_batch()) continue;
  layout::FileStatus status{};
  const std::uint64_t room = writer_.is_delegated() ? writer_.ask(client, status) : 0;
  if (room != 0) note_server_state();
  const std::lock_guard lock(mutex_);
  if (state_ != State::renewing) return;
  if (room != 0)
    state_ = State::held;
  else
    stop_keeping();
  // Writes may have been taken from the ring meanwhile.
  room_ = room - std::min<std::uint64_t>(room, records_.bytes());
  const std::uint64_t end = std::exchange(end_, records_.empty() ? writer_.size() : std::max(end_, writer_.size()));
  if (ring_ == nullptr) return;
  // If others have changed the file at a restarted server, appends of the ring are not where the program expects them.
  const bool is_changed = file_.appends() && end_ != end;
  if (is_changed || room_ < kRoomForRing) ring_->seal();
  if (is_changed) take_ring();
  ring_->publish(room_);
}

void KeptFile::give_back(bool closes) {
  {
    const std::lock_guard lock(mutex_);
    stop_keeping();
  }
  empty_ring();
  const std::lock_guard turn(writing_);
  if (over_) return;
  while (write_batch()) continue;
  {
    const std::lock_guard lock(mutex_);
    ring_.reset();
  }
  pass(FaultPoint::ring_ended);
  if (!closes) writer_.give_back();
  pass(FaultPoint::given_back);
  if (number_) buffer_.remove_file(*number_);
  pass(FaultPoint::forgotten);
  over_ = true;
}

int KeptFile::attach(std::unique_ptr<WriteRing> ring, const Writer& by,
                     const std::function<void(WriteRing&, WriteBuffer::FileNumber)>& begin) {
  const std::lock_guard lock(mutex_);
  if (most_ < 2 * layout::kWriteRingBytes) return EINVAL;
  if (may_keep() != Why::done || room_ < kRoomForRing) return EAGAIN;
  if (ring_ != nullptr && (!ring_->is_sealed() || !take_ring())) return EAGAIN;
  ring_.reset();
  note_writer(by);
  begin(*ring, *number_);
  pass(FaultPoint::ring_attached);
  ring_ = std::move(ring);
  ring_->set_end(end_);
  ring_->publish(room_);
  ring_pause_ = kFirstLookPause;
  ring_due_ = Clock::now() + ring_pause_;
  return 0;
}

/// Requires the lock. Moves writes from the ring to the records. False: some are left, since the memory is full, or the
/// first one is being sent.
bool KeptFile::take_ring() {
  if (ring_ == nullptr) return true;
  if (is_sent_from_ring_) return false;
  bool is_full = false;
  while (const auto write = is_full ? std::nullopt : ring_->first()) {
    std::uint64_t offset = file_.appends() ? end_ : write->offset;
    is_full = file_.appends() && !records_.begin_whole(write->bytes());
    for (const auto& part : write->parts) {
      const std::size_t bytes = is_full ? 0 : add(offset, part).bytes;
      ring_->remove(bytes);
      offset += bytes;
      is_full = is_full || bytes < part.size();
    }
  }
  pass(FaultPoint::ring_copied);
  ring_->publish(room_);
  if (ring_->take_broken()) {
    file_.errors().note(EIO);
    stop_keeping();
  }
  return !is_full;
}

/// Requires the lock. Why `take_ring` has returned false.
KeptFile::Why KeptFile::why_not_taken() const { return is_sent_from_ring_ ? Why::sending : Why::full; }

bool KeptFile::look_at_ring(bool asked) {
  const std::lock_guard lock(mutex_);
  if (ring_ == nullptr || (!asked && ring_due_ > Clock::now())) return false;
  const std::uint64_t before = kept_;
  const bool is_taken = take_ring();
  const bool is_used = asked || !is_taken || kept_ != before;
  ring_pause_ = is_used ? kFirstLookPause : std::min<Clock::duration>(2 * ring_pause_, kLongestLookPause);
  const bool sleeps = !is_used && (ring_->is_sealed() || (ring_pause_ == kLongestLookPause && ring_->sleep()));
  ring_due_ = sleeps ? Clock::time_point::max() : Clock::now() + ring_pause_;
  return may_keep() != Why::over && room_ < kRoomForRing && !ring_->is_sealed();
}

void KeptFile::end_ring() {
  const std::lock_guard lock(mutex_);
  if (ring_ != nullptr) ring_->seal();
}

void KeptFile::empty_ring() {
  std::uint64_t end = 0;
  const auto take = [&] {
    const std::lock_guard lock(mutex_);
    if (end == 0 && ring_ != nullptr) end = ring_->last();
    return take_ring() || ring_->has_taken(end);
  };
  if (take()) return;
  const std::lock_guard turn(writing_);
  while (!take() && (write_batch() || write_past_memory())) continue;
}

/// Requires `writing_`. Writes the ring's first write, because other files' writes fill the memory, unless an older one
/// has found room there meanwhile. False: there is none.
bool KeptFile::write_past_memory() {
  DelegatedWriter::Write write;
  {
    const std::lock_guard lock(mutex_);
    if (!records_.empty()) return true;
    const auto first = ring_ == nullptr ? std::nullopt : ring_->first();
    if (!first) return false;
    const std::uint64_t offset = file_.appends() ? end_ : first->offset;
    write = {.offset = offset, .bytes = first->bytes(), .drops = drops_.held()};
    for (const auto& part : first->parts)
      if (!part.empty()) write.parts.push_back({const_cast<std::byte*>(part.data()), part.size()});
    is_sent_from_ring_ = true;
  }
  send(write);
  {
    const std::lock_guard lock(mutex_);
    is_sent_from_ring_ = false;
    ring_->remove(write.bytes);
    room_ -= std::min<std::uint64_t>(room_, write.bytes);
    ring_->publish(room_);
    end_ = std::max(end_, write.offset + write.bytes);
  }
  buffer_.set_sending(*number_, false);
  return true;
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
  if (recalled_) return {};
  return ring_ == nullptr ? writing_due() : std::min(ring_due_, writing_due());
}

/// Requires the lock.
KeptFile::Clock::time_point KeptFile::writing_due() const {
  if (records_.bytes() >= kSentFrom) return {};
  return records_.empty() ? Clock::time_point::max() : records_.kept_since() + kKeptFor;
}

void KeptFile::write_due() {
  {
    const std::lock_guard lock(mutex_);
    if (writing_due() > Clock::now()) return;
  }
  write_some();
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
