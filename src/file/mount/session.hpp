// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "file/mount/file_system.hpp"
#include "file/mount/local_connection.hpp"

struct fuse_session;

namespace wherry::file::mount {

struct MountOptions {
  std::string address{};    ///< wherry://NODE:PORT of a `wherry serve`
  std::string directory{};  ///< to mount on
  bool read_only = false;
  bool allow_other = false;                   ///< processes of other users may use it
  bool passthrough = true;                    ///< as Passthrough, where it can be had
  std::chrono::milliseconds timeout{60'000};  ///< as HostOptions
  std::size_t connections = 4;
  std::size_t threads = 8;  ///< calls that are served at the same time
};

/// A mounted file system and the threads that serve it.
class Session {
 public:
  /// Connects, and mounts. Throws Error: as Host, prepare_mount_point and check_fuse do, EPERM where the kernel or
  /// fusermount3 refuses.
  explicit Session(const MountOptions& options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  /// Unmounts. Programs that still use the mount get errors.
  ~Session();

  /// Serves. Returns when the mount answers. Throws Error.
  void start();
  /// Returns when the directory is unmounted, or `signals` is readable; then it unmounts, after what shared mappings
  /// have changed is written to the server.
  /// Returns false if the kernel's device failed, which ends the mount too.
  bool wait(int signals);

  [[nodiscard]] const std::string& directory() const { return directory_; }
  /// Whether the kernel moves data between programs and the server's files; after `start`.
  [[nodiscard]] bool passes_through() const { return system_.files().passes_through(); }

 private:
  [[nodiscard]] HostOptions host_options(const MountOptions& options);
  void mount(const MountOptions& options);
  /// Whether the directory still shows this mount: others may have detached it, and mounted something else.
  [[nodiscard]] bool is_here() const;
  void work();
  void take_failure(int error);
  void stop();
  void serve_what_waits();
  void forget_mount_point();

  std::string directory_;
  std::optional<dev_t> device_;  ///< of the mount
  LocalConnection::Shared local_;
  FileSystem system_;
  UniqueFd ended_;  ///< readable once a thread has found that the mount is gone
  std::atomic<bool> stopping_{false};
  std::atomic<bool> failed_{false};
  std::atomic<std::ptrdiff_t> working_{0};  ///< threads that have not ended
  std::unique_ptr<fuse_session, void (*)(fuse_session*)> session_;
  std::size_t count_;
  std::vector<std::thread> threads_;
};

}  // namespace wherry::file::mount
