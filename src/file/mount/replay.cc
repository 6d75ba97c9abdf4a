// SPDX-License-Identifier: Apache-2.0
#include "file/mount/replay.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "file/mount/fault_points.hpp"
#include "file/mount/writer.hpp"
#include "file/wire/status.hpp"

namespace wherry::file::mount {
namespace {

using LeftFile = WriteBuffer::LeftFile;

/// The end of the first contiguous records, which may have been one request.
std::uint64_t end_of_first(const WriteBuffer& buffer, const LeftFile& left) {
  std::uint64_t end = buffer.offset(left.records.front());
  for (const WriteBuffer::RecordNumber record : left.records) {
    if (buffer.offset(record) != end) break;
    end += buffer.data(record).size();
  }
  return end;
}

/// Whether a request in progress has written the beginning of the first record, up to the end of a page.
bool has_begun(const WriteBuffer& buffer, const LeftFile& left, Host& host, Host::Handle handle) {
  constexpr std::size_t kPage = 4096;
  const std::uint64_t offset = buffer.offset(left.records.front());
  const auto data = buffer.data(left.records.front());
  const auto first = data.first(std::min<std::size_t>(data.size(), kPage - offset % kPage));
  std::vector<std::byte> there(first.size());
  return left.sending && host.read(handle, offset, there).bytes == there.size() && std::ranges::equal(there, first);
}

bool is_unchanged(const WriteBuffer& buffer, const LeftFile& left, const layout::FileStatus& now, bool begun) {
  if (begun) return now.size >= left.size && now.size <= std::max(left.size, end_of_first(buffer, left));
  return now.size == left.size && nanoseconds_of(now.modified) == left.modified;
}

/// Contiguous records, written together.
struct Batch {
  std::vector<WriteBuffer::RecordNumber> records{};
  std::uint64_t offset = 0;
  std::vector<std::byte> data{};
};

/// No request of the earlier daemon was longer, so the first batch contains all of it.
constexpr std::size_t kMostInBatch = std::size_t{4} << 20;

Batch next_batch(const WriteBuffer& buffer, std::span<const WriteBuffer::RecordNumber> records) {
  Batch batch{.offset = buffer.offset(records.front())};
  for (const WriteBuffer::RecordNumber record : records) {
    const auto data = buffer.data(record);
    if (buffer.offset(record) != batch.offset + batch.data.size() || batch.data.size() + data.size() > kMostInBatch)
      break;
    batch.data.insert(batch.data.end(), data.begin(), data.end());
    batch.records.push_back(record);
  }
  return batch;
}

/// For appends the server adds what is missing, since the request in progress may have been carried out in part. Data
/// that others append meanwhile stays.
int write_batch(const Batch& batch, const LeftFile& left, Host& host, Host::Handle handle, std::size_t& bytes) {
  for (auto rest = std::span<const std::byte>(batch.data); !rest.empty();) {
    const std::uint64_t offset = batch.offset + (batch.data.size() - rest.size());
    const Result written = left.appends ? host.append_again(handle, offset, rest) : host.write(handle, offset, rest);
    if (written.bytes == 0) return written.failed() ? written.error : EIO;
    rest = rest.subspan(written.bytes);
    bytes += written.bytes;
  }
  return 0;
}

/// Proceeds in the order of KeptFile: this daemon may be killed at any instruction, too, and the next one compares the
/// file with the recorded state.
int write_records(WriteBuffer& buffer, LeftFile& left, Host& host, Host::Handle handle, std::size_t& bytes) {
  while (!left.records.empty()) {
    const Batch batch = next_batch(buffer, left.records);
    buffer.set_sending(left.number, true);
    pass(FaultPoint::replay_sending);
    if (const int error = write_batch(batch, left, host, handle, bytes); error != 0) return error;
    pass(FaultPoint::replay_written);
    layout::FileStatus now{};
    if (const int error = host.status(handle, now); error != 0) return error;
    drop_set_id_bits(host, handle, now.mode, left.drops);
    left.size = now.size;
    left.modified = nanoseconds_of(now.modified);
    buffer.set_written(left.number, left.size, left.modified);
    pass(FaultPoint::replay_noted);
    for (const WriteBuffer::RecordNumber record : batch.records) buffer.remove(record);
    pass(FaultPoint::replay_removed);
    buffer.set_sending(left.number, false);
    left.sending = false;
    left.records.erase(left.records.begin(), left.records.begin() + static_cast<std::ptrdiff_t>(batch.records.size()));
  }
  return 0;
}

/// Names under which the file may be found: it may have been renamed or removed since its name was recorded.
std::vector<std::string> names_of(const LeftFile& left, Host& host, const LaterNames& later) {
  std::vector<std::string> names;
  if (later) names = later(left.identity);
  names.push_back(left.name);
  for (std::size_t i = 0, known = names.size(); i < known; ++i) {
    for (std::string& name : host.names().later_names(names[i])) names.push_back(std::move(name));
  }
  return names;
}

struct Opened {
  int error = ESTALE;  ///< ESTALE: no name leads to the file
  Host::Opened file{};
  bool reads = false;
};

/// Does not open another file that has the name: the open could block.
Opened open_left(const LeftFile& left, Host& host, const std::string& name) {
  layout::FileStatus there{};
  const auto error_of = [](int error) {
    return error == ENOENT || error == ENOTDIR || error == ELOOP ? ESTALE : error;
  };
  if (const int error = host.names().status(name, false, there); error != 0) return {.error = error_of(error)};
  if (!is_same_file(identity_of(there), left.identity)) return {};
  const std::uint32_t flags =
      layout::kFileOpenWrite | layout::kFileOpenNoFollow | (left.appends ? layout::kFileOpenAppend : 0);
  Opened opened{.file = host.open(name, flags | layout::kFileOpenRead)};
  opened.reads = opened.file.error != EACCES;
  if (!opened.reads) opened.file = host.open(name, flags);
  opened.error = error_of(opened.file.error);
  if (opened.error != 0 || is_same_file(identity_of(opened.file.status), left.identity)) return opened;
  (void)host.close(opened.file.handle);  // nothing was written through it
  return {};
}

/// Errors other than ESTALE are the ones to report.
Opened open_left(const LeftFile& left, Host& host, const LaterNames& names) {
  Opened failed;
  for (const std::string& name : names_of(left, host, names)) {
    Opened opened = open_left(left, host, name);
    if (opened.error == 0) return opened;
    if (opened.error != ESTALE) failed = opened;
  }
  return failed;
}

/// Writes the records of one file, and removes those that are written.
Replayed write_left(WriteBuffer& buffer, LeftFile& left, Host& host, const LaterNames& names) {
  Replayed replayed{.name = left.name, .identity = left.identity};
  const Opened opened = open_left(left, host, names);
  replayed.error = opened.error;
  if (opened.error != 0) return replayed;
  const Host::Handle handle = opened.file.handle;
  const bool begun = opened.reads && has_begun(buffer, left, host, handle);
  if (!is_unchanged(buffer, left, opened.file.status, begun)) replayed.error = ESTALE;
  if (replayed.error == 0) replayed.error = write_records(buffer, left, host, handle, replayed.bytes);
  if (const int error = host.close(handle); replayed.error == 0) replayed.error = error;
  return replayed;
}

/// The end of a file that is appended to, with its records.
std::uint64_t end_of(const WriteBuffer& buffer, const LeftFile& left) {
  if (left.records.empty()) return left.size;
  return buffer.offset(left.records.back()) + buffer.data(left.records.back()).size();
}

/// Moves writes from a ring behind the records of its file, as many as there is memory for. If this daemon is killed
/// meanwhile, the next one has some of them twice, in the right order. Of appends only what is behind the end is moved:
/// the earlier daemon may have taken the rest.
void take_ring(WriteBuffer& buffer, LeftFile& left, WriteRing& ring) {
  for (auto write = ring.first(); write; write = ring.first()) {
    const auto part = write->parts[0].first(std::min(write->parts[0].size(), WriteBuffer::kPiece));
    const std::uint64_t offset = left.appends ? end_of(buffer, left) : write->offset;
    if (write->offset < offset) {
      ring.remove(std::min<std::uint64_t>(offset - write->offset, part.size()));
      continue;
    }
    const auto record = buffer.add(left.number, offset, part);
    if (!record) break;
    left.records.push_back(*record);
    pass(FaultPoint::replay_copied);
    ring.remove(part.size());
  }
  ring.publish(0);
}

/// Writes the records of one file and of its ring. There is memory for the ring at the latest when the file's own
/// records are written.
Replayed write_left(WriteBuffer& buffer, LeftFile& left, WriteRing* ring, Host& host, const LaterNames& names) {
  if (ring != nullptr) take_ring(buffer, left, *ring);
  if (left.records.empty() && ring != nullptr && !ring->first())
    return {.name = left.name, .identity = left.identity, .error = ring->take_broken() ? EIO : 0};
  if (left.records.empty()) return {.name = left.name, .identity = left.identity, .error = ENOMEM};
  Replayed replayed = write_left(buffer, left, host, names);
  while (ring != nullptr && replayed.error == 0) {
    take_ring(buffer, left, *ring);
    if (left.records.empty()) break;
    const Replayed more = write_left(buffer, left, host, names);
    replayed.bytes += more.bytes;
    replayed.error = more.error;
  }
  if (ring != nullptr && replayed.error == 0 && ring->take_broken()) replayed.error = EIO;
  return replayed;
}

/// Those with records first: after them there is memory for the rings of the others.
std::vector<std::reference_wrapper<LeftFile>> in_order(std::vector<LeftFile>& files) {
  std::vector<std::reference_wrapper<LeftFile>> ordered;
  for (const bool is_empty : {false, true}) {
    for (LeftFile& file : files) {
      if (file.records.empty() == is_empty) ordered.emplace_back(file);
    }
  }
  return ordered;
}

}  // namespace

bool is_same_file(Identity one, const Identity& other) {
  one.type = other.type;
  return one == other;
}

std::vector<Replayed> replay(WriteBuffer& left, Host& host, const std::function<void(const Replayed&)>& tell,
                             const LaterNames& names, const LeftRings& rings) {
  std::vector<Replayed> all;
  auto files = left.left();
  for (LeftFile& file : in_order(files)) {
    const auto found = rings.find(file.number);
    WriteRing* const ring = found == rings.end() ? nullptr : found->second.get();
    if (!file.records.empty() || (ring != nullptr && ring->first())) {
      all.push_back(write_left(left, file, ring, host, names));
      if (tell) tell(all.back());
    }
    // First: if this daemon is killed, the next one must not write a part of the lost data.
    left.remove_file(file.number);
    pass(FaultPoint::replay_forgotten);
    for (const WriteBuffer::RecordNumber record : file.records) left.remove(record);
  }
  return all;
}

}  // namespace wherry::file::mount
