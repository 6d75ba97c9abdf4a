// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

#include <wherry/result.hpp>

#include "file/mount/file_attributes.hpp"
#include "file/mount/lock_service.hpp"
#include "file/mount/passthrough.hpp"
#include "file/mount/served_tree.hpp"

namespace wherry::file::mount {

/// A place in an open file.
struct Position {
  NodeId node;
  OpenFile& file;
  std::uint64_t offset;
};

/// Files that programs have open. Functions return 0 or an errno value, or a Result. Threads: any. Blocks as Host does.
class OpenFiles {
 public:
  OpenFiles(ServedTree& tree, FileAttributes& attributes, LockService& locks)
      : tree_(tree), attributes_(attributes), locks_(locks) {}

  /// `flags` as open's. The file is valid until `close`.
  int create(NodeId parent, std::string_view name, std::uint32_t mode, int flags, Entry& entry, OpenFile*& file);
  int open(NodeId node, int flags, OpenFile*& file);
  void close(NodeId node, const OpenFile* file);
  [[nodiscard]] static Result read(OpenFile& file, std::uint64_t offset, std::span<std::byte> into);
  /// @param append  at the end of the file, wherever that is
  [[nodiscard]] Result write(NodeId node, OpenFile& file, std::uint64_t offset, std::span<const std::byte> from,
                             bool append);
  /// Copies at the server. Fewer bytes: the end of the first file, an interrupt, or an error that the next call meets.
  /// EOPNOTSUPP: to be copied by reads and writes.
  /// @param is_interrupted  asked between pieces
  [[nodiscard]] Result copy(const Position& from, const Position& to, std::uint64_t length,
                            const std::function<bool()>& is_interrupted);
  /// What close(2) reports: whether the host was started again and has lost data.
  static int flush(OpenFile& file);
  static int sync(const Hosts::File& file, bool data_only);
  /// `mode` as fallocate's.
  static int allocate(OpenFile& file, int mode, std::uint64_t offset, std::uint64_t length);
  static int seek(OpenFile& file, std::uint64_t offset, bool data, std::uint64_t& found);

  /// Whether the kernel moves data of files.
  [[nodiscard]] bool passes_through() const { return passthrough_.is_on() && tree_.hosts().lends(); }
  /// The type of the host's file system (statfs) if the kernel moves the data of this file, or may move that of files
  /// in this directory; 0 otherwise.
  long passed_through(NodeId node);
  [[nodiscard]] Passthrough& passthrough() { return passthrough_; }

 private:
  void add(NodeId node, const std::shared_ptr<OpenFile>& file);

  ServedTree& tree_;
  FileAttributes& attributes_;
  LockService& locks_;
  Passthrough passthrough_;
  std::mutex adding_;
};

}  // namespace wherry::file::mount
