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

#include "file/mount/kept_descriptors.hpp"
#include "file/mount/kept_file.hpp"
#include "file/mount/nodes.hpp"
#include "file/mount/open_file.hpp"
#include "file/mount/replay.hpp"
#include "file/mount/write_buffer.hpp"

namespace wherry::file::mount {

/// Write-behind for files that are delegated to this mount. A write is acknowledged once it is in this memory. A
/// separate thread writes it to the server, or a call that needs it there.
///
/// A node has at most one KeptFile, from before the server is asked for a delegation until that is given back. Before a
/// call asks the server for the data, size or times of a file, it must call `settle`. Before a call changes these in
/// another way, or opens the file, it must call `give_back`.
///
/// Thread-safe. `keeps` and `recall` never block; the others block as Host does.
class WriteBehind {
 public:
  using FileIdentity = layout::FileIdentity;

  /// @param memory  from WriteBuffer::make. Throws Error.
  /// @param descriptors  keeps rings for the next daemon, and has those of an earlier one; null: nothing is kept
  WriteBehind(Nodes& nodes, UniqueFd memory, KeptDescriptors* descriptors);
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;
  ~WriteBehind() { stop(); }

  /// Writes what an earlier daemon left in the memory. Its errors are reported as those of other writes. Call it before
  /// `start`.
  void replay(Host& host);
  /// Starts the thread: from now on writes may be held back. Once. Throws std::system_error.
  /// @param client  returns the number by which the server sends recalls to this mount; 0: none
  void start(std::function<std::uint64_t()> client);
  /// Writes everything, and logs errors that no fsync has reported. Later writes are not held back.
  void stop();

  /// Keeps a write, or its beginning. If it returns fewer bytes than given, the caller writes the rest; all bytes kept
  /// before are written by then.
  std::size_t write(NodeId node, OpenFile& file, std::uint64_t offset, std::span<const std::byte> from,
                    const Writer& by);
  /// Keeps an append. False: the caller makes it; all bytes kept before are written by then.
  /// @param begin  called first, with the end of the file
  bool append(NodeId node, OpenFile& file, std::span<const std::byte> from, const Writer& by,
              const std::function<void(std::uint64_t)>& begin);
  /// Takes writes to the file by this ring, too, while they are held back. Returns 0 or an errno value. EAGAIN: they
  /// are not.
  int attach(NodeId node, const OpenFile& file, std::unique_ptr<WriteRing> ring, const Writer& by);
  /// Takes what is in the file's ring, so that there is room.
  void take_ring(NodeId node);
  /// Waits until all acknowledged writes to the file are written, or have failed.
  void settle(NodeId node);
  /// As `settle`, for a read. The kernel may keep what it gets, so the file's ring ends first.
  void settle_for_pages(NodeId node);
  /// As `settle`, for all files.
  void settle_all();
  /// As `settle`, and gives the file back to the server.
  void give_back(NodeId node);
  /// As `give_back`, for a handle that is closed next.
  void close(NodeId node, const OpenFile& file);

  /// Logs errors that no fsync has reported, and none will.
  void log_errors(NodeId node, OpenFile& file);

  /// Whether writes to the file are held back, and its mode has no set-user-ID or set-group-ID bits.
  [[nodiscard]] bool keeps(NodeId node) const;
  /// Files whose attributes at the server may be out of date.
  [[nodiscard]] std::vector<NodeId> kept() const;
  /// Call it after a rename: updates the recorded names.
  void rename();

  /// Records recalls. Returns the files that have no held-back writes here.
  std::vector<FileIdentity> recall(const std::vector<FileIdentity>& files);
  /// Call it when the server sends no recalls any more.
  void recall_all();

 private:
  using Kept = std::shared_ptr<KeptFile>;
  static constexpr std::size_t kShares = 8;  ///< one file gets at most an eighth of the memory

  [[nodiscard]] Kept find(NodeId node) const;
  Kept ask(NodeId node, OpenFile& file);
  void end(const Kept& kept, bool closes);
  bool attend_to(const Kept& kept);
  void wake();
  void run();

  Nodes& nodes_;
  WriteBuffer buffer_;
  KeptDescriptors* descriptors_;
  LeftRings left_rings_{};
  std::function<std::uint64_t()> client_{};
  std::atomic<std::size_t> count_{0};  ///< size of `files_`
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Kept> files_;
  bool runs_ = false;
  std::thread thread_;
};

}  // namespace wherry::file::mount
