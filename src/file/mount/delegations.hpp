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

/// Files that no one writes before the server has recalled them from this mount. The kernel may cache their attributes,
/// and with them their pages. A thread with its own connection receives recalls, makes the kernel drop the attributes,
/// and gives the files back. While it is not connected, nothing is delegated.
///
/// Thread-safe. `look` blocks as Host does; of the others only `stop` blocks.
class Delegations {
 public:
  explicit Delegations(HostOptions options) : options_(std::move(options)) {}
  Delegations(const Delegations&) = delete;
  Delegations& operator=(const Delegations&) = delete;
  ~Delegations() { stop(); }

  /// Starts the thread; once. Does nothing if the kernel is too old (before Linux 5.10): it would cache an answer that
  /// was under way when its attributes were dropped. Throws std::system_error.
  /// @param drop  makes the kernel drop the attributes of a file; must not block
  /// @param write_behind  gets the recalls of files with held-back writes
  void start(std::function<void(NodeId)> drop, WriteBehind& write_behind);
  void stop();

  /// The number by which the server sends recalls to this mount; 0: not connected.
  [[nodiscard]] std::uint64_t client() const { return number_.load(std::memory_order_relaxed); }
  /// Returns the status of an open file: 0 or an errno value. Asks for a delegation if one is due.
  /// @param kept_for  how long the kernel may cache the status, from the start of this call
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
  std::atomic<std::uint64_t> number_{0};  ///< the server's number for this mount; 0: not connected
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  StreamConnection* connection_ = nullptr;    ///< the connection that the thread waits on
  std::map<Asked, Clock::time_point> asked_;  ///< the time at which the delegation has certainly ended
  Clock::time_point forget_{};                ///< when to remove ended entries next
  std::thread thread_;
};

}  // namespace wherry::file::mount
