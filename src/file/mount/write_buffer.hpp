// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "file/mount/layout/write_buffer.hpp"
#include "file/mount/nodes.hpp"

namespace wherry::file::mount {

/// Memory for writes that are not sent to the server yet, and the state of their files (layout/write_buffer.hpp). The
/// caller decides in which order records are written.
///
/// Thread-safe; calls for one file must come from one thread at a time. Never blocks.
class WriteBuffer {
 public:
  using FileNumber = std::uint32_t;
  using RecordNumber = std::uint32_t;
  static constexpr std::size_t kPiece = layout::kWriteBufferPiece;

  /// Throws Error: EINVAL if `memory` is not such a memfd.
  /// @param memory  a memfd from `make`, which may contain records. Records without a file are dropped
  explicit WriteBuffer(UniqueFd memory);
  WriteBuffer(const WriteBuffer&) = delete;
  WriteBuffer& operator=(const WriteBuffer&) = delete;
  ~WriteBuffer();

  /// Returns a memfd with room for `bytes`, rounded down to pieces; 0: no room. Throws Error: no memory.
  static UniqueFd make(std::size_t bytes);

  [[nodiscard]] std::size_t bytes() const { return std::size_t{records_} * kPiece; }

  /// Empty: too many files, or the name is too long.
  /// @param appends  whether its records are appends
  std::optional<FileNumber> add_file(const Identity& identity, const std::string& name, bool appends = false);
  /// Call it after its records are removed. If it is called before that, and this program is killed in between, the
  /// next one drops the records.
  void remove_file(FileNumber file);
  void rename(FileNumber file, const std::string& name);
  /// Sets the state of the server's file without kept records. Call it before the records that a request has written
  /// are removed.
  void set_written(FileNumber file, std::uint64_t size, std::uint64_t modified);
  /// Sets which set-user-ID and set-group-ID bits its records drop. Call it before those are kept.
  /// @param by  kFileWriteBy...
  void set_drops(FileNumber file, std::uint32_t by);
  /// @param sending  true before a request with the first records is sent; false once these records are removed
  void set_sending(FileNumber file, bool sending);

  /// Keeps bytes, at most a piece. Empty: no room.
  std::optional<RecordNumber> add(FileNumber file, std::uint64_t offset, std::span<const std::byte> from);
  /// Adds bytes to a record, as many as fit. Returns how many.
  std::size_t extend(RecordNumber record, std::span<const std::byte> from);
  void remove(RecordNumber record);
  [[nodiscard]] std::uint64_t offset(RecordNumber record) const;
  [[nodiscard]] std::span<const std::byte> data(RecordNumber record) const;

  /// What a killed program left. Everything read is checked.
  struct LeftFile {
    FileNumber number = 0;
    Identity identity{};  ///< without its type
    std::string name{};
    std::uint64_t size = 0;
    std::uint64_t modified = 0;
    bool sending = false;
    bool appends = false;
    std::uint32_t drops = 0;              ///< kFileWriteBy...
    std::vector<RecordNumber> records{};  ///< in the order in which they were kept
  };
  [[nodiscard]] std::vector<LeftFile> left() const;

 private:
  void map(std::size_t size);
  [[nodiscard]] bool is_sound(RecordNumber number) const;
  [[nodiscard]] layout::WriteFile& file(FileNumber number) const;
  [[nodiscard]] layout::WriteRecord& record(RecordNumber number) const;
  [[nodiscard]] std::byte* piece(RecordNumber number) const;

  UniqueFd memory_;
  std::byte* start_ = nullptr;
  std::size_t size_ = 0;
  std::uint32_t records_ = 0;
  std::mutex mutex_;
  std::vector<RecordNumber> free_;  ///< last freed, first reused: its memory is still in the caches
  std::vector<FileNumber> free_files_;
  std::uint64_t sequence_ = 0;
};

}  // namespace wherry::file::mount
