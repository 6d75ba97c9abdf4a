// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "file/mount/delegated_writer.hpp"
#include "file/mount/write_buffer.hpp"

namespace wherry::file::mount {

/// The held-back writes of one file in the write buffer, in the order in which they were kept. Contiguous writes share
/// records.
///
/// Not thread-safe. Never blocks.
class KeptRecords {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMostSent = std::size_t{1} << 20;  ///< bytes of one request to the server

  /// @param most  limit of bytes of the file
  KeptRecords(WriteBuffer& buffer, std::size_t most) : buffer_(buffer), most_(most) {}

  [[nodiscard]] bool empty() const { return records_.empty(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// When the first byte of the first record was kept. Only if it is not empty.
  [[nodiscard]] Clock::time_point kept_since() const { return records_.front().kept_at; }

  /// Returns how many bytes there was memory for.
  std::size_t add(WriteBuffer::FileNumber file, std::uint64_t offset, std::span<const std::byte> from);
  /// Makes the next `bytes`, of at most a piece, use one record. False: they would exceed the limit.
  bool begin_whole(std::size_t bytes);

  /// The first records that are contiguous in the file.
  struct Batch {
    DelegatedWriter::Write write{};  ///< valid until `remove`
    std::size_t records = 0;         ///< 0: there are none
    bool is_all = false;
  };
  /// From now on these records do not change.
  [[nodiscard]] Batch next();
  void remove(const Batch& batch);

 private:
  struct Record {
    WriteBuffer::RecordNumber number{};
    Clock::time_point kept_at{};  ///< time of its first byte
  };
  bool add_record(WriteBuffer::FileNumber file, std::uint64_t offset, std::span<const std::byte> from);

  WriteBuffer& buffer_;
  const std::size_t most_;
  std::deque<Record> records_{};
  bool is_open_ended_ = false;  ///< the last record is not being sent, and may grow
  std::size_t bytes_ = 0;
};

}  // namespace wherry::file::mount
