// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "file/client/lent_file.hpp"

namespace wherry::file::mount {

/// Has the kernel move data between programs and the server's own file, without a request to this process (FUSE
/// passthrough, Linux 6.9). For files that are lent.
///
/// Threads: any. Nothing blocks.
class Passthrough {
 public:
  /// A file that the kernel has been told of. It keeps the file until this, and all that is open by it, has ended.
  class Backing {
   public:
    /// @param device  the mount's, -1 once it is gone
    /// @param file_system  of the server's file
    Backing(std::shared_ptr<const std::atomic<int>> device, int number, long file_system)
        : device_(std::move(device)), number_(number), file_system_(file_system) {}
    Backing(const Backing&) = delete;
    Backing& operator=(const Backing&) = delete;
    ~Backing();
    /// In answers to opens.
    [[nodiscard]] int number() const { return number_; }
    /// The type (statfs) of the file system on which the server's file is.
    [[nodiscard]] long file_system() const { return file_system_; }

   private:
    std::shared_ptr<const std::atomic<int>> device_;
    int number_;
    long file_system_;
  };

  /// The kernel has offered it. Returns whether it is taken up, which the kernel is to hear.
  /// @param device  the mount's
  bool start(int device);
  /// The device is about to be closed.
  void end() { device_->store(-1, std::memory_order_relaxed); }
  /// Tries it once the mount answers, since the kernel may refuse it: this process must be root and have CAP_SYS_ADMIN.
  void check();
  /// It is not taken up. Before `start`.
  void forbid() { forbidden_ = true; }
  [[nodiscard]] bool is_on() const { return device_->load(std::memory_order_relaxed) >= 0; }
  /// Null where the kernel refuses: for want of rights, and for files of file systems that lie above others
  /// (overlayfs).
  std::shared_ptr<const Backing> add(const LentFile& file);
  /// What an earlier daemon has told the kernel of.
  std::shared_ptr<const Backing> resume(int number, long file_system) const {
    return std::make_shared<Backing>(device_, number, file_system);
  }

 private:
  bool forbidden_ = false;
  std::shared_ptr<std::atomic<int>> device_ = std::make_shared<std::atomic<int>>(-1);
};

}  // namespace wherry::file::mount
