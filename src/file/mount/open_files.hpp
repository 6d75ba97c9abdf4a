// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include <wherry/result.hpp>

#include "file/mount/file_attributes.hpp"
#include "file/mount/lock_service.hpp"
#include "file/mount/numbered.hpp"
#include "file/mount/passthrough.hpp"
#include "file/mount/served_tree.hpp"
#include "file/mount/writer.hpp"

namespace wherry::file::mount {

/// A position in an open file.
struct Position {
  NodeId node;
  OpenFile& file;
  std::uint64_t offset;
};

/// Files that programs have open, by the kernel's numbers. Functions return 0 or an errno value, or a Result.
/// Thread-safe. Blocks as Host does.
class OpenFiles {
 public:
  OpenFiles(ServedTree& tree, FileAttributes& attributes, LockService& locks)
      : tree_(tree), attributes_(attributes), locks_(locks) {}

  /// Takes over what an earlier daemon has left. Must be the first call.
  void restore(const KeptSnapshot& left);
  /// Null: it is closed. Valid until `close`.
  [[nodiscard]] OpenFile* find(std::uint64_t number) const { return numbered_.find(number); }

  /// `flags` of open(2). The file is valid until `close`.
  int create(NodeId parent, std::string_view name, std::uint32_t mode, int flags, Entry& entry, OpenFile*& file);
  int open(NodeId node, int flags, OpenFile*& file);
  void close(NodeId node, OpenFile* file);
  [[nodiscard]] Result read(NodeId node, OpenFile& file, std::uint64_t offset, std::span<std::byte> into);
  enum class Write : std::uint8_t {
    kept,            ///< at the offset; may be held back; reports an error of an earlier write
    at_once,         ///< as `kept`, but not held back
    page,            ///< a page of a shared mapping: does not report errors of other writes
    at_the_end,      ///< at the current end of the file, not held back
    kept_at_the_end  ///< as `at_the_end`, but may be held back
  };
  /// @param by  decides about set-user-ID bits that are set while the write is held back
  [[nodiscard]] Result write(NodeId node, OpenFile& file, std::uint64_t offset, std::span<const std::byte> from,
                             Write how, const Writer& by = {});
  /// Copies at the server. Returns fewer bytes than `length` at the end of the source file, after an interrupt, or
  /// before an error, which the next call returns. EOPNOTSUPP: copy by reads and writes instead.
  /// @param is_interrupted  called between pieces
  [[nodiscard]] Result copy(const Position& from, const Position& to, std::uint64_t length,
                            const std::function<bool()>& is_interrupted);
  /// The error for close(2): of held-back writes, or of data lost when the host rebooted.
  int flush(NodeId node, OpenFile& file);
  int sync(NodeId node, OpenFile& file, bool data_only);
  /// Also for a directory.
  static int sync(const Hosts::File& file, bool data_only);
  /// `mode` of fallocate.
  int allocate(NodeId node, OpenFile& file, int mode, std::uint64_t offset, std::uint64_t length);
  int seek(NodeId node, OpenFile& file, std::uint64_t offset, bool data, std::uint64_t& found);

  /// Makes a ticket by which a program moves data of a file past this mount. EBUSY: not for writing now, since the file
  /// may be mapped. EOPNOTSUPP: the kernel moves the data itself, which is faster.
  int make_ticket(NodeId node, OpenFile& file, bool writes, layout::FileTicket& ticket);
  /// Ends tickets for writing: after it returns 0, no write by them can follow.
  static int end_write_tickets(OpenFile& file);
  /// Records a write by a ticket of this file. EIO: the host has rebooted, and the data is lost.
  static int note_written(const OpenFile& file, const BootId& boot);

  /// Whether the kernel moves file data itself.
  [[nodiscard]] bool passes_through() const { return passthrough_.is_on() && tree_.hosts().lends(); }
  /// The type of the host's file system (statfs) if the kernel moves the data of this file, or may do so for files of
  /// this directory; otherwise 0.
  long passed_through(NodeId node);
  [[nodiscard]] Passthrough& passthrough() { return passthrough_; }

 private:
  Result put(NodeId node, OpenFile& file, std::uint64_t offset, std::span<const std::byte> from, bool append);
  void add(NodeId node, const std::shared_ptr<OpenFile>& file);
  /// The file that an earlier daemon opened for this thread's request, or null.
  [[nodiscard]] OpenFile* opened_before() const;
  Host::Opened make(const std::string& path, std::uint32_t wanted, std::uint32_t mode,
                    std::unique_ptr<Hosts::File>& file);
  bool keep_append(NodeId node, OpenFile& file, std::span<const std::byte> from, const Writer& by);
  Result append(const Hosts::File& file, std::span<const std::byte> from);
  int end_other_write_tickets(NodeId node, const OpenFile& opened);

  ServedTree& tree_;
  FileAttributes& attributes_;
  LockService& locks_;
  Passthrough passthrough_;
  Numbered<OpenFile> numbered_;
  std::unordered_map<std::uint64_t, std::uint64_t>
      answered_;  ///< numbers by the kernel's requests, of an earlier daemon
  std::mutex adding_;
};

}  // namespace wherry::file::mount
