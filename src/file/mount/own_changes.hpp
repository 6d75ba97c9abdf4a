// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace wherry::file::mount {

/// Counts the changes that programs of this mount make to names and extended attributes. Nothing tells the kernel which
/// of two answers is older: what the server has said while such a change was under way is not to be kept, or the
/// kernel may show again what was there before.
///
/// Threads: any. Nothing blocks.
class OwnChanges {
 public:
  /// A change, from before the server is asked for it until it has answered.
  class Change {
   public:
    explicit Change(OwnChanges& changes) : changes_(changes) { ++changes_.begun_; }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;
    ~Change() { ++changes_.ended_; }

   private:
    OwnChanges& changes_;
  };

  /// A look at the server's files, from before it is asked.
  class Look {
   public:
    explicit Look(const OwnChanges& changes) : changes_(changes) {}

    /// Whether no change was under way at any time so far.
    [[nodiscard]] bool is_undisturbed() const { return ended_ == begun_ && changes_.begun_ == begun_; }

   private:
    const OwnChanges& changes_;
    std::uint64_t ended_ = changes_.ended_;  ///< read first: if both are equal, all had ended when the other is read
    std::uint64_t begun_ = changes_.begun_;
  };

 private:
  std::atomic<std::uint64_t> begun_{0};
  std::atomic<std::uint64_t> ended_{0};
};

}  // namespace wherry::file::mount
