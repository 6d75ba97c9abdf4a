// SPDX-License-Identifier: Apache-2.0
// The windows that the peer has registered: a copy of the peer's table that is checked once and then used. Invalid
// entries are left out. Thread-safe.
//
// May include: base, arch, layout, fabric.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "fabric/exposure.hpp"
#include "layout/window_page.hpp"

namespace wherry::window {

class RemoteWindow {
 public:
  struct Entry {
    std::uint64_t sequence = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    memory::RemoteKey key;
    int protection = 0;
  };

  RemoteWindow(std::size_t number, const Entry& entry)
      : offset(entry.offset),
        bytes(entry.bytes),
        protection(entry.protection),
        index(number),
        sequence(entry.sequence),
        key_(entry.key) {}

  /// Returns the window's memory, mapping it at the first call. Null, with an errno value, if it cannot be reached.
  /// @param exposure  the connection's; null: it has none
  memory::RemoteRegion* reach(fabric::Exposure* exposure, int& error);

  const std::uint64_t offset;
  const std::uint64_t bytes;
  const int protection;
  const std::size_t index;
  const std::uint64_t sequence;

 private:
  const memory::RemoteKey key_;
  std::atomic<memory::RemoteRegion*> ready_{nullptr};
  std::mutex mutex_;
  std::shared_ptr<memory::RemoteRegion> reached_;
};

/// A snapshot of the windows, sorted by offset.
using RemoteWindows = std::vector<std::shared_ptr<RemoteWindow>>;

class RemoteTable {
 public:
  explicit RemoteTable(const layout::WindowPage& own_page)
      : own_page_(own_page), windows_(std::make_shared<RemoteWindows>()) {}

  /// Returns a snapshot of the peer's windows. Null: out of memory.
  std::shared_ptr<const RemoteWindows> windows();

 private:
  void refresh(std::size_t used);
  bool read(std::size_t index, std::uint64_t sequence, RemoteWindow::Entry& entry) const;

  const layout::WindowPage& own_page_;  ///< words from the peer, in this side's segment
  std::mutex mutex_;                    // guards the members below
  std::uint64_t changes_ = 0;
  std::shared_ptr<const RemoteWindows> windows_;
};

}  // namespace wherry::window
