// SPDX-License-Identifier: Apache-2.0
// The windows that this side has registered. Thread-safe.
//
// May include: base, arch, layout, fabric.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "fabric/connection.hpp"
#include "layout/window_page.hpp"
#include "window/late_buffers.hpp"
#include "window/peers_page.hpp"

namespace wherry::window {

/// The memory behind a range of this side's offsets.
struct LocalPiece {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  int protection = 0;
  std::byte* view = nullptr;
  bool lasting = false;  ///< as in memory::LocalRegion::Piece
  std::shared_ptr<memory::LocalRegion> exposed;
};

/// A snapshot of the pieces, sorted by offset. Keeps the memory alive.
using LocalPieces = std::vector<LocalPiece>;

class LocalTable {
 public:
  /// @param late  keeps staging memory of entries that were not acknowledged
  LocalTable(fabric::Connection& connection, PeersPage& peers, const layout::WindowPage& own_page, LateBuffers& late)
      : connection_(connection), exposure_(connection.exposure()), peers_(peers), own_page_(own_page), late_(late) {}

  /// As Space::register_memory and Space::unregister, but without the wait for the peer to unmap. EBUSY: it still maps
  /// the window that was there.
  int add(std::span<std::byte> memory, std::optional<std::uint64_t> wanted, int protection, std::uint64_t& offset);
  int remove(std::uint64_t offset, std::uint64_t bytes);
  /// Withdraws all windows; nothing can be registered any more. The caller then flushes the connection, and releases
  /// the memory by remove_all().
  void close() noexcept;
  void remove_all() noexcept;

  /// Returns a snapshot of the registered windows. Null, with an errno value in `error`: ECONNRESET once remove_all()
  /// has followed close(), ENOMEM.
  std::shared_ptr<const LocalPieces> pieces(int& error);

 private:
  struct Window {
    std::uint64_t bytes = 0;
    int protection = 0;
    std::shared_ptr<memory::LocalRegion> exposed;
    std::vector<std::uint32_t> entries;  ///< table entries, one for each piece
  };
  using Windows = std::map<std::uint64_t, Window>;

  static bool is_free(const Windows& windows, std::uint64_t offset, std::uint64_t bytes);
  int choose(std::optional<std::uint64_t> wanted, std::uint64_t bytes, std::uint64_t& offset);
  int announce(std::uint64_t offset, Window& window, LateBuffers::Slot& staging,
               const fabric::Deadline& deadline) noexcept;
  int withdraw(Windows::iterator first, Windows::iterator last, const fabric::Deadline& deadline) noexcept;
  void store_withdrawn(Windows::iterator first, Windows::iterator last) noexcept;
  void release(Windows::iterator first, Windows::iterator last) noexcept;
  static void drop_entries(Windows::iterator first, Windows::iterator last);
  bool release_unmapped(Window& window);
  void release_leaving();
  int publish_changes(const fabric::Deadline& deadline) noexcept;
  void store_changes() noexcept;
  [[nodiscard]] std::shared_ptr<const LocalPieces> list_pieces() const;
  void drop_pieces();

  fabric::Connection& connection_;
  fabric::Exposure* const exposure_;  ///< null: the fabric cannot expose memory
  PeersPage& peers_;
  const layout::WindowPage& own_page_;  ///< words from the peer, in this side's segment

  std::mutex mutex_;  // held by registering calls; guards the members below
  bool closed_ = false;
  Windows windows_;
  Windows leaving_;                       ///< withdrawn, but still mapped by the peer
  std::vector<std::uint64_t> sequences_;  ///< by entry, of all entries used so far
  std::vector<std::uint32_t> free_;       ///< entries that are free again; capacity for all
  std::uint64_t changes_ = 0;
  std::uint64_t next_chosen_ = 0;

  std::mutex pieces_mutex_;
  std::shared_ptr<const LocalPieces> pieces_;  ///< null: changed since the last snapshot

  LateBuffers& late_;
};

}  // namespace wherry::window
