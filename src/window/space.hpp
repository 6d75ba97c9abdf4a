// SPDX-License-Identifier: Apache-2.0
// The registered address spaces of the two sides of a connection. Each side registers ranges of its memory as *windows*
// at offsets of its space. The other side reads, writes and maps them by offset, without the owner's program taking
// part.
//
// Errors are errno values; 0 is success. Thread-safe. No call waits for the peer's program, except fences on the peer's
// RMA.
//
// May include: base, arch, layout, memory, fabric.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/fork_generation.hpp"
#include "fabric/connection.hpp"
#include "layout/window_page.hpp"
#include "window/backoff.hpp"
#include "window/completion_counters.hpp"
#include "window/late_buffers.hpp"
#include "window/local_table.hpp"
#include "window/mapping_references.hpp"
#include "window/remote_table.hpp"

namespace wherry::window {

/// Callers choose offsets below this; offsets from here on are chosen by this side.
inline constexpr std::uint64_t kFirstChosenOffset = std::uint64_t{1} << 62;

/// Unmaps mappings made by Space::map, or parts of them. Unlike munmap, it tells the peer. From any thread.
int unmap(void* start, std::size_t bytes);

/// Options of an RMA call.
struct RmaOptions {
  bool complete = false;  ///< return after completion (put fabrics complete late; others always complete first)
  bool ordered = false;   ///< the last cache line of the destination becomes visible after all the rest
};

/// The RMA calls started up to some moment.
struct Mark {
  bool of_peer = false;
  std::uint64_t calls = 0;
};

/// A word that a fence stores once the RMA before it is complete.
struct Signal {
  std::uint64_t offset = 0;  ///< a multiple of 4; the 8 bytes lie in one writable window
  std::uint64_t value = 0;
};

class Space {
 public:
  /// Bytes that a Space needs of each side's segment: zeroed, and used for nothing else.
  static constexpr std::size_t kBytes = sizeof(layout::WindowPage);

  /// How the peer learns that this side has closed. by_space: from this object. by_caller: from something else that the
  /// caller and the peer watch, for example if a forked child may continue on the connection that its parent closes.
  enum class EndNotice : std::uint8_t { by_space, by_caller };

  /// @param connection  both sides' offers set `exposes`; outlives this object
  /// @param place, peers_place  offsets in this side's segment and in the peer's, multiples of the page size
  Space(fabric::Connection& connection, std::size_t place, std::size_t peers_place, EndNotice by = EndNotice::by_space);
  Space(fabric::Connection& connection, std::size_t place) : Space(connection, place, place) {}
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;
  /// Closes.
  ~Space();

  static constexpr Clock::duration kFenceTimeout = std::chrono::seconds(10);
  /// Called repeatedly while a call waits for the peer. True ends the wait. For callers that learn of the peer's end,
  /// or of their own, outside the connection.
  using GiveUp = std::function<bool()>;

  struct Registered {
    int error = 0;
    std::uint64_t offset = 0;
  };
  /// Registers `memory` of the caller. EINVAL: not whole pages. EFAULT: some of it is not mapped. Memory that is freed
  /// later stays in the window. Other threads may use the memory meanwhile (memory/page_exchange.hpp). ENOTSUP in a
  /// forked child: the peer knows only its parent's memory.
  /// @param offset  none: an offset is chosen, never 0. Otherwise a multiple of the page size. EADDRINUSE: there is a
  ///                window, or it is not below kFirstChosenOffset. EBUSY: the peer still maps a window that was there
  /// @param protection  PROT_READ, PROT_WRITE or both: what the peer may do; EINVAL if neither
  /// @param timeout  how long to wait for the peer to unmap what was there; `give_up` ends that wait with ECANCELED
  /// ENOMEM: no memory, or more than kMostWindows pieces. ECONNRESET: the peer has left. ETIMEDOUT: on a network, the
  /// peer's fabric has not acknowledged the window within kFenceTimeout; nothing is registered then.
  Registered register_memory(std::span<std::byte> memory, std::optional<std::uint64_t> offset, int protection,
                             Clock::duration timeout = {}, const GiveUp& give_up = {});
  /// Unregisters all windows within a range of whole pages. EINVAL: the range cuts a window, or is empty. ENXIO: there
  /// is no window. The peer can start nothing new on them. The memory, and the peer's mappings of it, stay; offsets
  /// that the peer maps are taken until it has unmapped them. ETIMEDOUT: as above; the peer may start something new for
  /// a while.
  int unregister(std::uint64_t offset, std::size_t bytes);

  /// Copies between a range of this side's windows and a range of the peer's. Each may span adjacent windows. EINVAL:
  /// no bytes. ENXIO: a range is not registered completely. EPERM: a window does not allow it (the source must be
  /// readable, the destination writable). ECONNRESET: the peer has left. ETIMEDOUT: on a network, no progress for
  /// kFenceTimeout. The memory is then in use until the connection is destroyed.
  int write_to(std::uint64_t local, std::size_t bytes, std::uint64_t remote, RmaOptions options = {});
  int read_from(std::uint64_t local, std::size_t bytes, std::uint64_t remote, RmaOptions options = {});
  /// The same for any memory of this side. EFAULT: it is not mapped.
  int write_to(std::span<const std::byte> source, std::uint64_t remote, RmaOptions options = {});
  int read_from(std::span<std::byte> destination, std::uint64_t remote, RmaOptions options = {});

  [[nodiscard]] bool can_map() const { return connection_.map() != nullptr; }
  /// Maps a range of the peer's windows as shared memory.
  /// @param where  null: anywhere. Otherwise page-aligned; what is mapped there is replaced
  /// The caller must unmap the mapping (window::unmap). The mapping outlives this object and the peer, and is not
  /// inherited by fork. EINVAL: no whole pages. ENXIO, EPERM, ECONNRESET as above. ENOMEM. ENOTSUP: this memory cannot
  /// be mapped.
  struct Mapped {
    int error = 0;
    std::byte* start = nullptr;
  };
  Mapped map(std::byte* where, std::uint64_t remote, std::size_t bytes, int protection);

  /// Returns a mark of all RMA calls that this side (or the peer) has started.
  [[nodiscard]] Mark mark(bool of_peer) const;
  /// Waits until the calls of `mark` are complete. ETIMEDOUT. ECONNRESET: the peer has left before. EINVAL: that many
  /// calls were not started yet. ECANCELED: `give_up` returned true before.
  int wait(Mark mark, Clock::duration timeout = kFenceTimeout, const GiveUp& give_up = {});
  /// Waits for the calls of mark(of_peer), then stores `local` in this side's windows and `remote` in the peer's. A
  /// reader that sees a word sees all bytes of those calls. EINVAL: unaligned. ENXIO, EPERM, and as wait().
  int signal(bool of_peer, const std::optional<Signal>& local, const std::optional<Signal>& remote,
             Clock::duration timeout = kFenceTimeout, const GiveUp& give_up = {});

  /// Unregisters everything and tells the peer. From then on the calls of both sides fail with ECONNRESET. With
  /// EndNotice::by_caller the peer only finds no windows any more. A forked child's copy leaves its parent's windows
  /// alone.
  void close();
  /// The same with a deadline. Returns the result of the connection's flush, which covers everything sent before on the
  /// connection. EBADF: it was closed before, or this is a forked child.
  Result close(const fabric::Deadline& deadline) noexcept;

 private:
  struct View;
  struct LocalEnd;

  /// A part of a transfer, in bytes from its start.
  struct Part {
    std::size_t from = 0;
    std::size_t to = 0;
  };

  [[nodiscard]] bool peer_left();
  int flush(Clock::duration timeout);
  int look(View& view, bool both);
  int transfer(const LocalEnd& local, std::size_t bytes, std::uint64_t remote, bool writing, RmaOptions options);
  int move_in_order(const View& view, const LocalEnd& local, std::size_t bytes, std::uint64_t remote, bool writing,
                    RmaOptions options);
  int move_parts(const View& view, const LocalEnd& local, Part part, std::uint64_t remote, bool writing,
                 bool completes);
  int move(const View& view, const LocalEnd& local, Part part, std::uint64_t remote, bool writing);
  int move_staged(memory::RemoteRegion& reached, std::uint64_t offset, std::span<std::byte> near, bool writing);
  int request(memory::RemoteRegion& reached, std::uint64_t offset, std::span<std::byte> near, bool writing);
  int store_near(const View& view, const Signal& signal);
  int store_far(const View& view, const Signal& signal);
  int map_windows(const View& view, std::span<std::byte> where, std::uint64_t remote, int protection);

  fabric::Connection& connection_;
  fabric::Exposure* const exposure_;  ///< null: the fabric cannot expose memory, so there are no windows
  const bool maps_;                   ///< a load/store fabric
  layout::WindowPage& own_page_;      ///< words from the peer, in this side's segment
  PeersPage peers_;                   ///< words to the peer, in the peer's segment
  const std::shared_ptr<MappingReferences> references_;
  LocalTable local_;
  RemoteTable remote_;
  CompletionCounters completions_;
  std::atomic<bool> closed_{false};
  const bool announces_end_;
  const Origin origin_;  ///< a forked child's copy moves data, but neither registers nor closes
  LateBuffers late_;
};

}  // namespace wherry::window
