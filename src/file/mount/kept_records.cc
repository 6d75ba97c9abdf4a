// SPDX-License-Identifier: Apache-2.0
#include "file/mount/kept_records.hpp"

#include <algorithm>
#include <new>

namespace wherry::file::mount {

std::size_t KeptRecords::add(WriteBuffer::FileNumber file, std::uint64_t offset, std::span<const std::byte> from) {
  const auto is_followed = [&](WriteBuffer::RecordNumber last) {
    return buffer_.offset(last) + buffer_.data(last).size() == offset;
  };
  const std::size_t before = bytes_;
  std::size_t added = 0;
  if (is_open_ended_ && !records_.empty() && is_followed(records_.back().number) && before < most_)
    added = buffer_.extend(records_.back().number, from);
  while (added < from.size() && before + added < most_) {
    const auto rest = from.subspan(added);
    const auto piece = rest.first(std::min(rest.size(), WriteBuffer::kPiece));
    if (!add_record(file, offset + added, piece)) break;
    added += piece.size();
  }
  bytes_ += added;
  return added;
}

/// False: no memory.
bool KeptRecords::add_record(WriteBuffer::FileNumber file, std::uint64_t offset, std::span<const std::byte> from) {
  try {
    records_.emplace_back();
  } catch (const std::bad_alloc&) {
    return false;
  }
  const auto record = buffer_.add(file, offset, from);
  if (record)
    records_.back() = {.number = *record, .kept_at = Clock::now()};
  else
    records_.pop_back();
  is_open_ended_ = is_open_ended_ || record.has_value();
  return record.has_value();
}

bool KeptRecords::begin_whole(std::size_t bytes) {
  if (bytes_ + bytes > most_) return false;
  if (!records_.empty() && buffer_.data(records_.back().number).size() + bytes > WriteBuffer::kPiece)
    is_open_ended_ = false;
  return true;
}

KeptRecords::Batch KeptRecords::next() {
  Batch batch;
  DelegatedWriter::Write& write = batch.write;
  for (const Record& record : records_) {
    const std::uint64_t offset = buffer_.offset(record.number);
    const auto data = buffer_.data(record.number);
    if (batch.records == 0) write.offset = offset;
    if (offset != write.offset + write.bytes || write.bytes + data.size() > kMostSent) break;
    write.parts.push_back({const_cast<std::byte*>(data.data()), data.size()});
    write.bytes += data.size();
    ++batch.records;
  }
  batch.is_all = batch.records == records_.size();
  if (batch.is_all) is_open_ended_ = false;
  return batch;
}

void KeptRecords::remove(const Batch& batch) {
  for (std::size_t i = 0; i < batch.records; ++i) {
    buffer_.remove(records_.front().number);
    records_.pop_front();
  }
  bytes_ -= batch.write.bytes;
}

}  // namespace wherry::file::mount
