// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "file/mount/kept_file.hpp"
#include "file/mount/nodes.hpp"
#include "file/mount/open_file.hpp"
#include "file/mount/write_buffer.hpp"

namespace wherry::file::mount {

/// Writes to files that are delegated to this mount: acknowledged once they are in its memory, and written to the
/// server by a thread of its own, or by calls that need them there.
///
/// A node has one KeptFile at most, from before the server is asked for a delegation until that is given back. Calls
/// that ask the server for the data, size or times of a file come after `settle`; those that change them in another
/// way, or open the file, after `give_back`.
///
/// Threads: any. `keeps` and `recall` never block, the others as Host does.
class WriteBehind {
 public:
  using FileIdentity = layout::FileIdentity;

  /// @param memory  of WriteBuffer::make. Throws Error.
  WriteBehind(Nodes& nodes, UniqueFd memory) : nodes_(nodes), buffer_(std::move(memory)) {}
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;
  ~WriteBehind() { stop(); }

  /// Writes what an earlier daemon left in the memory. Errors are told as those of other writes. Before `start`.
  void replay(Host& host);
  /// Starts the thread: from now on writes may be kept. Once.
  /// @param client  the number by which the server tells this mount of recalls, 0 while there is none
  /// Throws std::system_error.
  void start(std::function<std::uint64_t()> client);
  /// Writes all, and logs errors that no fsync has told of. Nothing is kept any more.
  void stop();

  /// Keeps a write, or the beginning of it. Fewer bytes: the rest is to be written by the caller; nothing that was kept
  /// before is unwritten then.
  std::size_t write(NodeId node, OpenFile& file, std::uint64_t offset, std::span<const std::byte> from,
                    const Writer& by);
  /// Keeps an append. False: it is to be made by the caller; nothing that was kept before is unwritten then.
  /// @param begin  called before, with the end of the file
  bool append(NodeId node, OpenFile& file, std::span<const std::byte> from, const Writer& by,
              const std::function<void(std::uint64_t)>& begin);
  /// What was acknowledged of the file is written, or has failed.
  void settle(NodeId node);
  /// The same of all files.
  void settle_all();
  /// The same of one, and the server has it back.
  void give_back(NodeId node);
  /// The same of a handle that is closed next.
  void close(NodeId node, const OpenFile& file);

  /// Errors that no fsync has told of, and none will.
  void log_errors(NodeId node, OpenFile& file);

  /// Whether writes to the file are kept, and its mode has no set-user-ID or set-group-ID bits.
  [[nodiscard]] bool keeps(NodeId node) const;
  /// Files whose attributes at the server may be behind.
  [[nodiscard]] std::vector<NodeId> kept() const;
  /// Directories or files have other names now.
  void rename();

  /// Others want these files. Returns those of which nothing is kept here.
  std::vector<FileIdentity> recall(const std::vector<FileIdentity>& files);
  /// The server tells of no recalls any more.
  void recall_all();

 private:
  using Kept = std::shared_ptr<KeptFile>;
  static constexpr std::size_t kShares = 8;  ///< of one file: an eighth of the memory

  [[nodiscard]] Kept find(NodeId node) const;
  Kept ask(NodeId node, OpenFile& file);
  void end(const Kept& kept, bool closes);
  bool attend_to(const Kept& kept);
  void wake();
  void run();

  Nodes& nodes_;
  WriteBuffer buffer_;
  std::function<std::uint64_t()> client_{};
  std::atomic<std::size_t> count_{0};  ///< of `files_`
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Kept> files_;
  bool runs_ = false;
  std::thread thread_;
};

}  // namespace wherry::file::mount
