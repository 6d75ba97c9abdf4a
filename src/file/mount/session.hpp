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
#include "file/mount/kept_descriptors.hpp"
#include "file/mount/kept_state.hpp"
#include "file/mount/local_connection.hpp"

struct fuse_session;

namespace wherry::file::mount {

struct MountOptions {
  std::string address{};    ///< wherry://NODE:PORT of a `wherry serve`
  std::string directory{};  ///< to mount on
  bool read_only = false;
  bool allow_other = false;                   ///< processes of other users may use the mount
  bool passthrough = true;                    ///< use Passthrough if possible
  std::chrono::milliseconds timeout{60'000};  ///< as in HostOptions
  std::size_t connections = 4;
  std::size_t write_buffer = std::size_t{64} << 20;  ///< limit of held-back writes, in bytes
  std::size_t threads = 8;                           ///< number of calls served at the same time
};

/// A mounted file system and the threads that serve it.
class Session {
 public:
  /// Connects and mounts, or takes over the mount of a killed daemon from what it kept. Throws Error: as Host,
  /// prepare_mount_point and check_fuse; EPERM if the kernel or fusermount3 refuses.
  Session(const MountOptions& options, KeptDescriptors& kept);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  /// Unmounts. Programs that still use the mount get errors.
  ~Session();

  /// Starts serving. Returns when the mount answers. Throws Error.
  void start();
  /// Returns when the directory is unmounted, or `signals` is readable. In the latter case it unmounts, after changes
  /// of shared mappings are written to the server. Returns false if the kernel's device failed, which also ends the
  /// mount.
  bool wait(int signals);

  [[nodiscard]] const std::string& directory() const { return directory_; }
  /// Whether the kernel moves data between programs and the server's files; valid after `start`.
  [[nodiscard]] bool passes_through() const { return system_.files().passes_through(); }

 private:
  /// What an earlier daemon has left. Lives only during construction.
  struct Left {
    /// @param write_buffer  limit of held-back writes in bytes, if there was no earlier daemon
    Left(KeptDescriptors& kept, std::size_t write_buffer);
    UniqueFd memory;
    UniqueFd device;
    UniqueFd writes;                   ///< from WriteBuffer::make
    std::unique_ptr<KeptState> state;  ///< null: nothing is kept
    KeptSnapshot snapshot;
  };
  Session(const MountOptions& options, KeptDescriptors& kept, Left left);

  [[nodiscard]] HostOptions host_options(const MountOptions& options, const KeptSnapshot& left);
  void prepare(const MountOptions& options);
  void mount(const MountOptions& options);
  void go_on(UniqueFd device, const KeptSnapshot& left);
  void hand_over();
  /// Whether the directory still shows this mount: it may have been detached, and something else mounted.
  [[nodiscard]] bool is_here() const;
  void wait_for_kernel();
  void work();
  void take_failure(int error);
  void stop();
  void serve_what_waits();
  void forget_mount_point();

  KeptDescriptors& kept_;
  bool takes_over_;  ///< from an earlier daemon
  UniqueFd state_memory_;
  std::unique_ptr<KeptState> state_;
  UniqueFd write_memory_;
  std::string directory_;
  std::optional<dev_t> device_;  ///< of the mount
  LocalConnection::Shared local_;
  FileSystem system_;
  UniqueFd ended_;     ///< readable once a thread has found that the mount has ended
  UniqueFd answered_;  ///< readable once the kernel's first request was answered
  std::atomic<bool> stopping_{false};
  std::atomic<bool> served_{false};  ///< whether a request was answered
  std::atomic<bool> failed_{false};
  std::atomic<std::ptrdiff_t> working_{0};  ///< threads that have not ended
  std::unique_ptr<fuse_session, void (*)(fuse_session*)> session_;
  std::size_t count_;
  std::vector<std::thread> threads_;
};

}  // namespace wherry::file::mount
