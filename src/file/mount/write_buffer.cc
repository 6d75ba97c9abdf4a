// SPDX-License-Identifier: Apache-2.0
#include "file/mount/write_buffer.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <wherry/error.hpp>

namespace wherry::file::mount {
namespace {

using layout::WriteBufferHeader;
using layout::WriteFile;
using layout::WriteRecord;

constexpr std::size_t kPage = 4096;
constexpr const char* kAdvice = "set --write-buffer to a smaller size";

std::size_t files_end() { return sizeof(WriteBufferHeader) + layout::kWriteBufferFiles * sizeof(WriteFile); }

/// Offset of the pieces.
std::size_t head_of(std::size_t records) {
  return (files_end() + records * sizeof(WriteRecord) + kPage - 1) / kPage * kPage;
}

std::size_t size_of(std::size_t records) { return head_of(records) + records * WriteBuffer::kPiece; }

/// The bytes up to a zero; empty if there is none, or it is the first.
std::string text_of(const char (&name)[4096]) {
  const std::size_t length = ::strnlen(name, sizeof name);
  return length == sizeof name ? std::string() : std::string(name, length);
}

}  // namespace

UniqueFd WriteBuffer::make(std::size_t bytes) {
  const std::size_t records = std::min<std::size_t>(bytes / kPiece, UINT32_MAX / kPiece);
  UniqueFd memory(::memfd_create("wherry.writes", MFD_CLOEXEC));
  if (!memory.valid() || ::ftruncate(memory.get(), static_cast<off_t>(size_of(records))) != 0)
    throw Error(errno, "make memory for writes", "", kAdvice);
  const WriteBufferHeader header{.version = layout::kWriteBufferVersion,
                                 .magic = layout::kWriteBufferMagic,
                                 .records = static_cast<std::uint32_t>(records),
                                 .reserved = {}};
  if (::pwrite(memory.get(), &header, sizeof header, 0) != sizeof header)
    throw Error(errno, "make memory for writes", "", kAdvice);
  return memory;
}

WriteBuffer::WriteBuffer(UniqueFd memory) : memory_(std::move(memory)) {
  WriteBufferHeader header{};
  struct stat found{};
  const bool is_one =
      ::fstat(memory_.get(), &found) == 0 && ::pread(memory_.get(), &header, sizeof header, 0) == sizeof header &&
      header.version == layout::kWriteBufferVersion && header.magic == layout::kWriteBufferMagic &&
      header.records <= UINT32_MAX / kPiece && static_cast<std::uint64_t>(found.st_size) == size_of(header.records);
  if (!is_one) throw Error(EINVAL, "use memory for writes", "", "pass a memfd from WriteBuffer::make");
  records_ = header.records;
  map(size_of(records_));
  for (RecordNumber number = records_; number-- > 0;) {
    // KEPT-REMOVED acquire: what was stored of its file before it was removed.
    const std::uint64_t sequence = record(number).sequence.load(std::memory_order_acquire);
    sequence_ = std::max(sequence_, sequence);
    if (sequence != 0 && is_sound(number)) continue;
    if (sequence != 0) record(number).sequence.store(0, std::memory_order_relaxed);
    free_.push_back(number);
  }
  for (FileNumber number = layout::kWriteBufferFiles; number-- > 0;) {
    if (file(number).used.load(std::memory_order_relaxed) == 0) free_files_.push_back(number);
  }
}

/// Whether a committed record is valid. Otherwise a record of a removed file would become one of the next file with
/// that number.
bool WriteBuffer::is_sound(RecordNumber number) const {
  const WriteRecord& found = record(number);
  const bool has_file = found.file < layout::kWriteBufferFiles &&
                        file(found.file).used.load(std::memory_order_acquire) == 1;  // KEPT-FILE acquire
  return has_file && found.length.load(std::memory_order_acquire) <= kPiece &&       // KEPT-LENGTH acquire
         found.offset <= INT64_MAX - kPiece;
}

WriteBuffer::~WriteBuffer() {
  if (start_ != nullptr) ::munmap(start_, size_);
}

void WriteBuffer::map(std::size_t size) {
  void* const mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  if (mapped == MAP_FAILED) throw Error(errno, "map memory for writes", "", kAdvice);
  start_ = static_cast<std::byte*>(mapped);
  size_ = size;
}

WriteFile& WriteBuffer::file(FileNumber number) const {
  return *reinterpret_cast<WriteFile*>(start_ + sizeof(WriteBufferHeader) + number * sizeof(WriteFile));
}

WriteRecord& WriteBuffer::record(RecordNumber number) const {
  return *reinterpret_cast<WriteRecord*>(start_ + files_end() + number * sizeof(WriteRecord));
}

std::byte* WriteBuffer::piece(RecordNumber number) const { return start_ + head_of(records_) + number * kPiece; }

std::optional<WriteBuffer::FileNumber> WriteBuffer::add_file(const Identity& identity, const std::string& name,
                                                             bool appends) {
  if (name.size() >= sizeof WriteFile::names[0]) return {};
  FileNumber number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (free_files_.empty()) return {};
    number = free_files_.back();
    free_files_.pop_back();
  }
  WriteFile& made = file(number);
  made.device = identity.device;
  made.inode = identity.inode;
  made.born_seconds = identity.born_seconds;
  made.born_nanoseconds = identity.born_nanoseconds;
  made.appends = appends ? 1 : 0;
  std::memcpy(made.names[0], name.c_str(), name.size() + 1);
  made.name.store(0, std::memory_order_relaxed);
  made.sending.store(0, std::memory_order_relaxed);
  made.size.store(0, std::memory_order_relaxed);
  made.modified.store(0, std::memory_order_relaxed);
  made.drops.store(0, std::memory_order_relaxed);
  made.used.store(1, std::memory_order_release);  // KEPT-FILE release: what it is
  return number;
}

void WriteBuffer::remove_file(FileNumber number) {
  file(number).used.store(0, std::memory_order_release);  // KEPT-FILE release: its records are removed
  const std::lock_guard lock(mutex_);
  free_files_.push_back(number);
}

void WriteBuffer::rename(FileNumber number, const std::string& name) {
  WriteFile& renamed = file(number);
  if (name.size() >= sizeof renamed.names[0]) return;  // the file will not be found by this name
  const std::uint64_t next = 1 - renamed.name.load(std::memory_order_relaxed);
  std::memcpy(renamed.names[next], name.c_str(), name.size() + 1);
  renamed.name.store(next, std::memory_order_release);  // KEPT-NAME release: the name
}

void WriteBuffer::set_written(FileNumber number, std::uint64_t size, std::uint64_t modified) {
  file(number).size.store(size, std::memory_order_relaxed);
  file(number).modified.store(modified, std::memory_order_relaxed);
}

void WriteBuffer::set_drops(FileNumber number, std::uint32_t by) {
  file(number).drops.store(by, std::memory_order_relaxed);
}

void WriteBuffer::set_sending(FileNumber number, bool sending) {
  // KEPT-SENDING: behind the removal of the records that were written, and before the request that follows.
  file(number).sending.exchange(sending ? 1 : 0, std::memory_order_acq_rel);
}

std::optional<WriteBuffer::RecordNumber> WriteBuffer::add(FileNumber number, std::uint64_t offset,
                                                          std::span<const std::byte> from) {
  RecordNumber taken = 0;
  std::uint64_t sequence = 0;
  {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return {};
    taken = free_.back();
    free_.pop_back();
    sequence = ++sequence_;
  }
  WriteRecord& made = record(taken);
  std::memcpy(piece(taken), from.data(), from.size());
  made.offset = offset;
  made.file = number;
  made.length.store(static_cast<std::uint32_t>(from.size()), std::memory_order_relaxed);
  made.sequence.store(sequence, std::memory_order_release);  // KEPT-RECORD release: all of it
  return taken;
}

std::size_t WriteBuffer::extend(RecordNumber number, std::span<const std::byte> from) {
  WriteRecord& extended = record(number);
  const std::uint32_t length = extended.length.load(std::memory_order_relaxed);
  const std::size_t more = std::min(from.size(), kPiece - length);
  if (more == 0) return 0;
  std::memcpy(piece(number) + length, from.data(), more);
  extended.length.store(static_cast<std::uint32_t>(length + more), std::memory_order_release);  // KEPT-LENGTH release
  return more;
}

void WriteBuffer::remove(RecordNumber number) {
  record(number).sequence.store(0, std::memory_order_release);  // KEPT-REMOVED release: what its file is by now
  const std::lock_guard lock(mutex_);
  free_.push_back(number);
}

std::uint64_t WriteBuffer::offset(RecordNumber number) const { return record(number).offset; }

std::span<const std::byte> WriteBuffer::data(RecordNumber number) const {
  return {piece(number), record(number).length.load(std::memory_order_relaxed)};
}

std::vector<WriteBuffer::LeftFile> WriteBuffer::left() const {
  std::vector<LeftFile> files;
  for (FileNumber number = 0; number < layout::kWriteBufferFiles; ++number) {
    const WriteFile& found = file(number);
    if (found.used.load(std::memory_order_acquire) != 1) continue;                        // KEPT-FILE acquire
    const std::uint64_t which = found.name.load(std::memory_order_acquire) == 0 ? 0 : 1;  // KEPT-NAME acquire
    LeftFile& one = files.emplace_back();
    one.number = number;
    one.identity = {.device = found.device,
                    .inode = found.inode,
                    .born_seconds = found.born_seconds,
                    .born_nanoseconds = found.born_nanoseconds};
    one.name = text_of(found.names[which]);
    one.size = found.size.load(std::memory_order_relaxed);
    one.modified = found.modified.load(std::memory_order_relaxed);
    one.sending = found.sending.load(std::memory_order_acquire) != 0;  // KEPT-SENDING acquire
    one.appends = found.appends != 0;
    one.drops = static_cast<std::uint32_t>(found.drops.load(std::memory_order_relaxed));
  }
  std::vector<std::pair<std::uint64_t, RecordNumber>> order;
  for (RecordNumber number = 0; number < records_; ++number) {
    const std::uint64_t sequence = record(number).sequence.load(std::memory_order_acquire);  // KEPT-RECORD acquire
    if (sequence != 0 && is_sound(number)) order.emplace_back(sequence, number);
  }
  std::ranges::sort(order);
  for (const auto& [sequence, number] : order) {
    const auto of = std::ranges::find(files, record(number).file, &LeftFile::number);
    if (of != files.end()) of->records.push_back(number);
  }
  return files;
}

}  // namespace wherry::file::mount
