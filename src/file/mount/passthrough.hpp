// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "file/client/lent_file.hpp"

namespace wherry::file::mount {

/// Lets the kernel move data between programs and the server's own file, without requests to this process (FUSE
/// passthrough, Linux 6.9). Only for files that are lent.
///
/// Thread-safe. Never blocks.
class Passthrough {
 public:
  /// A file that is registered with the kernel. The kernel keeps it open until this object and all files opened by it
  /// end.
  class Backing {
   public:
    /// @param device  of the mount; -1 once it is closed
    /// @param file_system  of the server's file
    Backing(std::shared_ptr<const std::atomic<int>> device, int number, long file_system)
        : device_(std::move(device)), number_(number), file_system_(file_system) {}
    Backing(const Backing&) = delete;
    Backing& operator=(const Backing&) = delete;
    ~Backing();
    /// The number for answers to opens.
    [[nodiscard]] int number() const { return number_; }
    /// The type (statfs) of the server's file's file system.
    [[nodiscard]] long file_system() const { return file_system_; }

   private:
    std::shared_ptr<const std::atomic<int>> device_;
    int number_;
    long file_system_;
  };

  /// Call when the kernel offers passthrough. Returns whether to accept, which the caller answers to the kernel.
  /// @param device  of the mount
  bool start(int device);
  /// Call before the device is closed.
  void end() { device_->store(-1, std::memory_order_relaxed); }
  /// Tries passthrough once the mount answers. The kernel may refuse it: this process must be root with CAP_SYS_ADMIN.
  void check();
  /// Makes `start` decline. Call it before `start`.
  void forbid() { forbidden_ = true; }
  [[nodiscard]] bool is_on() const { return device_->load(std::memory_order_relaxed) >= 0; }
  /// Null: the kernel refuses, for lack of rights, or because the file's file system is stacked on another one
  /// (overlayfs).
  std::shared_ptr<const Backing> add(const LentFile& file);
  /// A file that an earlier daemon has registered with the kernel.
  std::shared_ptr<const Backing> resume(int number, long file_system) const {
    return std::make_shared<Backing>(device_, number, file_system);
  }

 private:
  bool forbidden_ = false;
  std::shared_ptr<std::atomic<int>> device_ = std::make_shared<std::atomic<int>>(-1);
};

}  // namespace wherry::file::mount
