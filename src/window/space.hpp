// SPDX-License-Identifier: Apache-2.0
// The registered address spaces of the two sides of a connection. Each side registers ranges of its memory as *windows*
// at offsets of its space; the other reads, writes and maps them by offset, without the owner's program taking part.
//
// Errors are errno values, 0 for none. All calls from any thread; none waits for the peer's program, but for those of
// fences on the peer's RMA. May include: base, arch, layout, memory, fabric.
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

/// Where a caller may put windows itself; above, offsets are chosen by this side.
inline constexpr std::uint64_t kFirstChosenOffset = std::uint64_t{1} << 62;

/// Ends mappings that Space::map made, or parts of them: as munmap, which the peer would not hear of. From any thread.
int unmap(void* start, std::size_t bytes);

/// What a side may ask of its RMA.
struct RmaOptions {
  bool complete = false;  ///< return after completion (put fabrics complete late; others always complete first)
  bool ordered = false;   ///< the last cache line of the destination becomes visible after all the rest
};

/// RMA calls up to a moment.
struct Mark {
  bool of_peer = false;
  std::uint64_t calls = 0;
};

/// What a fence stores where, once the RMA before it is complete.
struct Signal {
  std::uint64_t offset = 0;  ///< a multiple of 4; 8 bytes in one window that may be written
  std::uint64_t value = 0;
};

class Space {
 public:
  /// Bytes of each side's segment that it needs: zeroed, and used for nothing else.
  static constexpr std::size_t kBytes = sizeof(layout::WindowPage);

  /// How the peer learns that this side has closed: from this object; or from what the caller and the peer watch, as
  /// where a forked child may go on with the connection that its parent closes.
  enum class EndIsTold : std::uint8_t { by_this, by_others };

  /// @param connection  both sides' offers said `exposes`; outlives this object
  /// @param place, peers_place  offsets in the own segment and in the peer's, multiples of the page size
  Space(fabric::Connection& connection, std::size_t place, std::size_t peers_place, EndIsTold by = EndIsTold::by_this);
  Space(fabric::Connection& connection, std::size_t place) : Space(connection, place, place) {}
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;
  /// Closes.
  ~Space();

  static constexpr Clock::duration kFenceTimeout = std::chrono::seconds(10);
  /// Asked again and again while a call waits for the peer; ends the wait by saying true. For callers that know of the
  /// peer's end, or of their own, by other means than the connection.
  using GiveUp = std::function<bool()>;

  struct Registered {
    int error = 0;
    std::uint64_t offset = 0;
  };
  /// Registers `memory`, which the caller already has: whole pages, EINVAL if not; EFAULT if some of it is not mapped.
  /// Memory that is freed later stays in the window. Other threads may go on using it (memory/page_exchange.hpp).
  /// ENOTSUP in a forked child: the peer knows of its parent's memory only.
  /// @param offset  none: chosen, never 0. Otherwise a multiple of the page size; EADDRINUSE if a window is there, or
  ///                it is not below kFirstChosenOffset; EBUSY if one was there that the peer still maps
  /// @param protection  PROT_READ, PROT_WRITE or both: what the peer may do; EINVAL if neither
  /// @param timeout  how long the peer may take to unmap what was there; `give_up` ends that with ECANCELED
  /// ENOMEM: no memory, or more than kMostWindows pieces. ECONNRESET: the peer has left. ETIMEDOUT: on a network, the
  /// peer's fabric has not acknowledged it within kFenceTimeout; nothing is registered then.
  Registered register_memory(std::span<std::byte> memory, std::optional<std::uint64_t> offset, int protection,
                             Clock::duration timeout = {}, const GiveUp& give_up = {});
  /// Unregisters the windows that lie within a range of whole pages. EINVAL if it cuts one, or is empty; ENXIO if there
  /// is none. The peer can start nothing new on them. The memory, and what the peer has mapped of it, stays; the
  /// offsets of that are taken until the peer has unmapped it. ETIMEDOUT: as above; it may start something new for a
  /// while.
  int unregister(std::uint64_t offset, std::size_t bytes);

  /// Copies between a range of this side's windows and one of the peer's; each may span windows that follow each other.
  /// EINVAL: no bytes. ENXIO: not all of a range is registered. EPERM: a window does not allow it (the source must be
  /// readable, the destination writable). ECONNRESET: the peer has left. ETIMEDOUT: on a network, nothing of it went on
  /// for kFenceTimeout. The memory is then in use until the connection is destroyed.
  int write_to(std::uint64_t local, std::size_t bytes, std::uint64_t remote, RmaOptions options = {});
  int read_from(std::uint64_t local, std::size_t bytes, std::uint64_t remote, RmaOptions options = {});
  /// The same for any memory of this side's. EFAULT if it is not there.
  int write_to(std::span<const std::byte> source, std::uint64_t remote, RmaOptions options = {});
  int read_from(std::span<std::byte> destination, std::uint64_t remote, RmaOptions options = {});

  [[nodiscard]] bool can_map() const { return connection_.map() != nullptr; }
  /// Maps a range of the peer's windows, as shared memory.
  /// @param where  null: anywhere. Otherwise page-aligned; what is mapped there is replaced
  /// The mapping is the caller's to unmap (window::unmap), outlives this object and the peer, and is not inherited by
  /// fork. EINVAL: no whole pages. ENXIO, EPERM, ECONNRESET as above. ENOMEM. ENOTSUP: this memory cannot be mapped.
  struct Mapped {
    int error = 0;
    std::byte* start = nullptr;
  };
  Mapped map(std::byte* where, std::uint64_t remote, std::size_t bytes, int protection);

  /// All RMA that this side, or the peer, has started.
  [[nodiscard]] Mark mark(bool of_peer) const;
  /// Waits until it is complete. ETIMEDOUT; ECONNRESET: the peer has left before; EINVAL: there is no such mark yet;
  /// ECANCELED: `give_up` said so before.
  int wait(Mark mark, Clock::duration timeout = kFenceTimeout, const GiveUp& give_up = {});
  /// Once all RMA marked by mark(of_peer) is complete, stores `local` in this side's windows, then `remote` in the
  /// peer's. With a word, all bytes of that RMA are visible. EINVAL: unaligned. ENXIO, EPERM, and as wait().
  int signal(bool of_peer, const std::optional<Signal>& local, const std::optional<Signal>& remote,
             Clock::duration timeout = kFenceTimeout, const GiveUp& give_up = {});

  /// Unregisters everything and tells the peer: its calls fail with ECONNRESET from then on, as this side's do. Where
  /// the end is told by others the peer finds no windows any more. A forked child's copy leaves its parent's windows.
  void close();
  /// The same, and says what the connection's flush came to, which covers all that went before on the connection.
  /// EBADF: it was closed before, or by the parent of this forked child.
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
  fabric::Exposure* const exposure_;  ///< null: the fabric has none, and there are no windows
  const bool maps_;                   ///< a load/store fabric
  layout::WindowPage& told_;          ///< what the peer says: in the own segment
  PeersPage peers_;                   ///< what this side says: in the peer's
  const std::shared_ptr<MappingReferences> references_;
  LocalTable local_;
  RemoteTable remote_;
  CompletionCounters completions_;
  std::atomic<bool> closed_{false};
  const bool tells_end_;
  const Origin origin_;  ///< a forked child's copy moves data, but neither registers nor closes
  LateBuffers late_;
};

}  // namespace wherry::window
