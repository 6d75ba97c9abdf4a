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

/// Memory for writes that are not on their way to the server yet, and what is known of their files
/// (layout/write_buffer.hpp). The order in which records are written is the callers' matter.
///
/// Threads: any; calls for one file from one at a time. Nothing blocks.
class WriteBuffer {
 public:
  using FileNumber = std::uint32_t;
  using RecordNumber = std::uint32_t;
  static constexpr std::size_t kPiece = layout::kWriteBufferPiece;

  /// @param memory  a memfd of `make`, in which records may be left. Those of no file are dropped
  /// Throws Error: EINVAL: it is none.
  explicit WriteBuffer(UniqueFd memory);
  WriteBuffer(const WriteBuffer&) = delete;
  WriteBuffer& operator=(const WriteBuffer&) = delete;
  ~WriteBuffer();

  /// A memfd with room for so many bytes, rounded down to pieces; 0: nothing is kept. Throws Error: no memory.
  static UniqueFd make(std::size_t bytes);

  [[nodiscard]] std::size_t bytes() const { return std::size_t{records_} * kPiece; }

  /// Empty: there are too many, or the name is too long.
  /// @param appends  its records are appends
  std::optional<FileNumber> add_file(const Identity& identity, const std::string& name, bool appends = false);
  /// After its records. If its records follow, and this program is killed in between, the next one drops them.
  void remove_file(FileNumber file);
  void rename(FileNumber file, const std::string& name);
  /// As the server's file is, but for what is kept. Before the records are removed that a request has written.
  void set_written(FileNumber file, std::uint64_t size, std::uint64_t modified);
  /// Which set-user-ID and set-group-ID bits go with its records. Before those are kept.
  /// @param by  kFileWriteBy...
  void set_drops(FileNumber file, std::uint32_t by);
  /// @param sending  a request with the first records is on its way: true before it is sent, false once they are
  /// removed
  void set_sending(FileNumber file, bool sending);

  /// Keeps bytes, at most a piece. Empty: there is no room.
  std::optional<RecordNumber> add(FileNumber file, std::uint64_t offset, std::span<const std::byte> from);
  /// Adds bytes to a record, as many as there is room for. Returns how many.
  std::size_t extend(RecordNumber record, std::span<const std::byte> from);
  void remove(RecordNumber record);
  [[nodiscard]] std::uint64_t offset(RecordNumber record) const;
  [[nodiscard]] std::span<const std::byte> data(RecordNumber record) const;

  /// What was left: by a program that was killed. Everything is checked that is read.
  struct LeftFile {
    FileNumber number = 0;
    Identity identity{};  ///< without its type
    std::string name{};
    std::uint64_t size = 0;
    std::uint64_t modified = 0;
    bool sending = false;
    bool appends = false;
    std::uint32_t drops = 0;              ///< kFileWriteBy...
    std::vector<RecordNumber> records{};  ///< in their order
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
  std::vector<RecordNumber> free_;  ///< the one that was used last is used next: its memory is at hand
  std::vector<FileNumber> free_files_;
  std::uint64_t sequence_ = 0;
};

}  // namespace wherry::file::mount
