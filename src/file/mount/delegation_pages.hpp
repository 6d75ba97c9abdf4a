// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "layout/delegation_page.hpp"

namespace wherry::file::mount {

/// The pages by which programs know until when an open file is delegated (layout/delegation_page.hpp). A program may
/// read a delegated file in place, since the file cannot change before `recall`.
///
/// Thread-safe; never blocks.
class DelegationPages {
 public:
  using Clock = std::chrono::steady_clock;
  /// Pages of one open file.
  static constexpr std::size_t kMost = 64;
  /// Pages of one open file and process. A process offers another page if the last one shows no delegation for a while:
  /// an earlier daemon may have it.
  static constexpr std::ptrdiff_t kMostOfProcess = 4;
  /// Pages of all open files, each of which is a mapping of this process.
  static constexpr std::size_t kMostOfAll = 8192;

  DelegationPages();
  DelegationPages(const DelegationPages&) = delete;
  DelegationPages& operator=(const DelegationPages&) = delete;
  ~DelegationPages();

  /// Adds the page that a program offers, perhaps in place of its oldest one. Returns 0, or EPERM: its descriptor
  /// cannot be taken, EINVAL: it is no such page, EMFILE: there are too many.
  /// @param thread  of the program; must be waiting for the answer
  int attach(pid_t thread, const layout::DelegationPageOffer& offer);

  /// Number of recalls. Empty: there are no pages.
  [[nodiscard]] std::optional<std::uint64_t> recalls() const;
  /// Tells the programs that the file is delegated until then, if there was no recall since.
  /// @param recalls  from before the server was asked
  void grant(std::uint64_t recalls, Clock::time_point until);
  /// To be called before the server may let others change the file.
  void recall();

 private:
  class Page;

  void make_room(pid_t process);

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Page>> pages_;
  std::uint64_t recalls_ = 0;
};

}  // namespace wherry::file::mount
