// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "file/client/host_connection.hpp"
#include "file/mount/nodes.hpp"
#include "file/mount/open_file.hpp"
#include "file/mount/write_behind.hpp"

namespace wherry::file::mount {

/// Files that are not written to before the server has told this mount: the kernel may keep their attributes, and with
/// them their pages, without asking. A thread with a connection of its own hears what the server recalls, has the
/// kernel drop the attributes, and gives the files back. While it is not connected nothing is delegated.
///
/// Threads: any. `look` blocks as Host does, of the others only `stop`.
class Delegations {
 public:
  explicit Delegations(HostOptions options) : options_(std::move(options)) {}
  Delegations(const Delegations&) = delete;
  Delegations& operator=(const Delegations&) = delete;
  ~Delegations() { stop(); }

  /// Starts the thread. Once. Does nothing where the kernel is too old to drop attributes that are on their way.
  /// @param drop  has the kernel drop the attributes of a file; never blocks
  /// @param write_behind  is told of the recall of files to which writes are kept
  /// Throws std::system_error.
  void start(std::function<void(NodeId)> drop, WriteBehind& write_behind);
  void stop();

  /// By which the server tells this mount of recalls; 0: it does not at the moment.
  [[nodiscard]] std::uint64_t client() const { return number_.load(std::memory_order_relaxed); }
  /// The status of an open file: 0 or an errno value. Asks for a delegation where that is due.
  /// @param kept_for  how long the kernel may keep it, from when this was called
  int look(NodeId node, const Identity& identity, OpenFile& file, layout::FileStatus& status,
           std::chrono::milliseconds& kept_for);

 private:
  using Clock = std::chrono::steady_clock;
  using Files = std::vector<layout::FileIdentity>;
  /// A file has several nodes if its time of birth changes, as on overlayfs.
  using Asked = std::pair<layout::FileIdentity, NodeId>;
  class Connected;

  void run();
  void converse();
  void serve(HostConnection& connection);
  void note(NodeId node, const layout::FileIdentity& file);
  void drop(const Files& files);
  void lose();

  HostOptions options_;
  std::function<void(NodeId)> drop_;
  WriteBehind* write_behind_ = nullptr;
  std::atomic<std::uint64_t> number_{0};  ///< by which the server knows this mount; 0: not connected
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  StreamConnection* connection_ = nullptr;    ///< that the thread waits on
  std::map<Asked, Clock::time_point> asked_;  ///< until when delegations have ended
  Clock::time_point forget_{};                ///< when those that have ended are looked for next
  std::thread thread_;
};

}  // namespace wherry::file::mount
