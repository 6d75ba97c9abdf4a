// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace wherry::file::mount {

/// Counts changes that programs of this mount make to names and extended attributes. The kernel cannot tell which of
/// two answers is older. So an answer of the server during such a change must not be cached; otherwise the kernel could
/// show the old state again.
///
/// Thread-safe. Never blocks.
class OwnChanges {
 public:
  /// A change. Lives from before the server is asked until it has answered.
  class Change {
   public:
    explicit Change(OwnChanges& changes) : changes_(changes) { ++changes_.begun_; }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;
    ~Change() { ++changes_.ended_; }

   private:
    OwnChanges& changes_;
  };

  /// A read of the server's files. Lives from before the server is asked.
  class Look {
   public:
    explicit Look(const OwnChanges& changes) : changes_(changes) {}

    /// Whether no change has been in progress at any time so far.
    [[nodiscard]] bool is_undisturbed() const { return ended_ == begun_ && changes_.begun_ == begun_; }

   private:
    const OwnChanges& changes_;
    std::uint64_t ended_ = changes_.ended_;  ///< first: if both are equal, all had ended when begun_ was read
    std::uint64_t begun_ = changes_.begun_;
  };

 private:
  std::atomic<std::uint64_t> begun_{0};
  std::atomic<std::uint64_t> ended_{0};
};

}  // namespace wherry::file::mount
