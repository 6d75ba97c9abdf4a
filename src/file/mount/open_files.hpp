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

/// A place in an open file.
struct Position {
  NodeId node;
  OpenFile& file;
  std::uint64_t offset;
};

/// Files that programs have open, by the numbers that the kernel calls them by. Functions return 0 or an errno value,
/// or a Result. Threads: any. Blocks as Host does.
class OpenFiles {
 public:
  OpenFiles(ServedTree& tree, FileAttributes& attributes, LockService& locks)
      : tree_(tree), attributes_(attributes), locks_(locks) {}

  /// `flags` as open's. The file is valid until `close`.
  /// Takes over what an earlier daemon has left. Before any other call.
  void restore(const KeptSnapshot& left);
  /// Null: it is closed. Valid until `close`.
  [[nodiscard]] OpenFile* find(std::uint64_t number) const { return numbered_.find(number); }

  int create(NodeId parent, std::string_view name, std::uint32_t mode, int flags, Entry& entry, OpenFile*& file);
  int open(NodeId node, int flags, OpenFile*& file);
  void close(NodeId node, OpenFile* file);
  [[nodiscard]] Result read(NodeId node, OpenFile& file, std::uint64_t offset, std::span<std::byte> into);
  enum class Write : std::uint8_t {
    kept,            ///< at the offset; it may be written to the server later, and an error of an earlier one is told
    at_once,         ///< the same, and it has reached the server
    page,            ///< of a shared mapping: errors of others are not told
    at_the_end,      ///< of the file, wherever that is, and it has reached the server
    kept_at_the_end  ///< the same, and it may be written to the server later
  };
  /// @param by  decides about set-user-ID bits that are set while the write is kept
  [[nodiscard]] Result write(NodeId node, OpenFile& file, std::uint64_t offset, std::span<const std::byte> from,
                             Write how, const Writer& by = {});
  /// Copies at the server. Fewer bytes: the end of the first file, an interrupt, or an error that the next call meets.
  /// EOPNOTSUPP: to be copied by reads and writes.
  /// @param is_interrupted  asked between pieces
  [[nodiscard]] Result copy(const Position& from, const Position& to, std::uint64_t length,
                            const std::function<bool()>& is_interrupted);
  /// What close(2) reports: errors of writes that were kept, and whether the host was started again and has lost data.
  int flush(NodeId node, OpenFile& file);
  int sync(NodeId node, OpenFile& file, bool data_only);
  /// Of a directory, too.
  static int sync(const Hosts::File& file, bool data_only);
  /// `mode` as fallocate's.
  int allocate(NodeId node, OpenFile& file, int mode, std::uint64_t offset, std::uint64_t length);
  int seek(NodeId node, OpenFile& file, std::uint64_t offset, bool data, std::uint64_t& found);

  /// By which a program moves data of a file past this mount. EBUSY: not to be written to now, since the file may be
  /// mapped. EOPNOTSUPP: the kernel's calls are right, and faster.
  int make_ticket(NodeId node, OpenFile& file, bool writes, layout::FileTicket& ticket);
  /// Nothing is written by tickets of this file any more.
  static int end_write_tickets(OpenFile& file);
  /// By a ticket of this file. EIO: that is lost with the host's last run.
  static int note_written(const OpenFile& file, const BootId& boot);

  /// Whether the kernel moves data of files.
  [[nodiscard]] bool passes_through() const { return passthrough_.is_on() && tree_.hosts().lends(); }
  /// The type of the host's file system (statfs) if the kernel moves the data of this file, or may move that of files
  /// in this directory; 0 otherwise.
  long passed_through(NodeId node);
  [[nodiscard]] Passthrough& passthrough() { return passthrough_; }

 private:
  Result put(NodeId node, OpenFile& file, std::uint64_t offset, std::span<const std::byte> from, bool append);
  void add(NodeId node, const std::shared_ptr<OpenFile>& file);
  /// What an earlier daemon has opened for the request that this thread serves, or null.
  [[nodiscard]] OpenFile* opened_before() const;
  Host::Opened make(const std::string& path, std::uint32_t wanted, std::uint32_t mode,
                    std::unique_ptr<Hosts::File>& file);
  bool keep_append(NodeId node, OpenFile& file, std::span<const std::byte> from, const Writer& by);
  Result append(const Hosts::File& file, std::span<const std::byte> from);
  int make_way_for(NodeId node, const OpenFile& opened);

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
