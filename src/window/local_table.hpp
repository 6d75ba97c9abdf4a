// SPDX-License-Identifier: Apache-2.0
// The windows that this side has registered. May include: base, arch, layout, fabric.
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

/// Memory of this process's behind a range of its offsets.
struct LocalPiece {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  int protection = 0;
  std::byte* view = nullptr;
  bool lasting = false;  ///< as in memory::LocalRegion::Piece
  std::shared_ptr<memory::LocalRegion> exposed;
};

/// As they were at one moment, by offset. Holds on to the memory.
using LocalPieces = std::vector<LocalPiece>;

class LocalTable {
 public:
  /// @param late  keeps entries that were not acknowledged
  LocalTable(fabric::Connection& connection, PeersPage& peers, const layout::WindowPage& told, LateBuffers& late)
      : connection_(connection), exposure_(connection.exposure()), peers_(peers), told_(told), late_(late) {}

  /// As Space::register_memory and Space::unregister have it; EBUSY: the peer maps what was there.
  int add(std::span<std::byte> memory, std::optional<std::uint64_t> wanted, int protection, std::uint64_t& offset);
  int remove(std::uint64_t offset, std::uint64_t bytes);
  /// Withdraws all, and nothing can be registered any more. The caller flushes the connection, and then lets go of the
  /// memory by remove_all().
  void close() noexcept;
  void remove_all() noexcept;

  /// What is registered now. Null, and an errno value: ECONNRESET once all is removed, ENOMEM.
  std::shared_ptr<const LocalPieces> pieces(int& error);

 private:
  struct Window {
    std::uint64_t bytes = 0;
    int protection = 0;
    std::shared_ptr<memory::LocalRegion> exposed;
    std::vector<std::uint32_t> entries;  ///< one for each piece of it
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
  fabric::Exposure* const exposure_;  ///< null: nothing can be registered
  PeersPage& peers_;
  const layout::WindowPage& told_;

  std::mutex mutex_;  // of registering calls; guards what follows
  bool closed_ = false;
  Windows windows_;
  Windows leaving_;                       ///< withdrawn, but mapped by the peer
  std::vector<std::uint64_t> sequences_;  ///< of the entries used so far
  std::vector<std::uint32_t> free_;       ///< of these, the ones free again; has room for all
  std::uint64_t changes_ = 0;
  std::uint64_t next_chosen_ = 0;

  std::mutex pieces_mutex_;
  std::shared_ptr<const LocalPieces> pieces_;  ///< null: not listed since the last change

  LateBuffers& late_;
};

}  // namespace wherry::window
