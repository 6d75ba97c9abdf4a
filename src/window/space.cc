// SPDX-License-Identifier: Apache-2.0
#include "window/space.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <functional>

#include "arch/cache_line.hpp"
#include "arch/copy.hpp"
#include "base/clock.hpp"
#include "memory/huge_pages.hpp"
#include "memory/populate.hpp"
#include "window/mappings.hpp"

namespace wherry::window {
namespace {

/// Returns the item of a list, sorted by offset, that contains `at`; else the end.
template <class List, class Of>
auto holder(const List& list, std::uint64_t at, Of&& of) {
  auto next = std::upper_bound(list.begin(), list.end(), at,
                               [&of](std::uint64_t wanted, const auto& item) { return wanted < of(item).offset; });
  if (next == list.begin()) return list.end();
  --next;
  return at - of(*next).offset < of(*next).bytes ? next : list.end();
}

/// Returns 0; ENXIO if a part of the range is not registered; EPERM if a window does not allow the access.
template <class List, class Of>
int check(const List& list, std::uint64_t start, std::uint64_t bytes, int protection, Of&& of) {
  if (bytes > INT64_MAX || start > INT64_MAX - bytes) return ENXIO;
  int error = 0;
  auto item = holder(list, start, of);
  for (std::uint64_t at = start; at < start + bytes; ++item) {
    if (item == list.end() || of(*item).offset > at) return ENXIO;
    if ((of(*item).protection & protection) != protection) error = EPERM;
    at = of(*item).offset + of(*item).bytes;
  }
  return error;
}

constexpr std::identity local_of;
const RemoteWindow& remote_of(const std::shared_ptr<RemoteWindow>& window) { return *window; }

/// Returns the bytes of a transfer before the last cache line of its destination.
std::size_t before_last_line(std::uint64_t destination, std::size_t bytes) {
  const std::size_t last = (destination + bytes - 1) % arch::kCacheLine + 1;
  return bytes - std::min(last, bytes);
}

/// Reserves addresses, aligned to huge pages if at least one fits, so that the peer's huge pages can be huge pages
/// here. Null: no addresses.
std::byte* reserve_addresses(std::size_t bytes) {
  const std::size_t more = bytes < memory::kHugePage ? 0 : memory::kHugePage;
  void* const room = ::mmap(nullptr, bytes + more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto* const start = static_cast<std::byte*>(room);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(start) % memory::kHugePage;
  const std::size_t before = more == 0 || past == 0 ? 0 : memory::kHugePage - past;
  if (before != 0) ::munmap(start, before);
  if (before != more) ::munmap(start + before + bytes, more - before);
  return start + before;
}

}  // namespace

/// The windows that a call works on, as they were when it began: both sides', or the peer's alone.
struct Space::View {
  std::shared_ptr<const LocalPieces> local;
  std::shared_ptr<const RemoteWindows> remote;
};

/// This side's end of a transfer: a range of windows, or memory that was checked to be mapped.
struct Space::LocalEnd {
  std::uint64_t offset = 0;
  std::byte* memory = nullptr;
};

int unmap(void* start, std::size_t bytes) { return Mappings::instance().unmap(start, bytes); }

Space::Space(fabric::Connection& connection, std::size_t place, std::size_t peers_place, EndNotice by)
    : connection_(connection),
      exposure_(connection.exposure()),
      maps_(connection.map() != nullptr),
      own_page_(*reinterpret_cast<layout::WindowPage*>(connection.segment().data() + place)),
      peers_(connection, peers_place),
      references_(std::make_shared<MappingReferences>(peers_)),
      local_(connection, peers_, own_page_, late_),
      remote_(own_page_),
      completions_(peers_),
      announces_end_(by == EndNotice::by_space) {
  own_page_.version = layout::kWindowVersion;
}

/// Flushes the connection. On a load/store fabric that waits for nothing, so no deadline is computed: it would cost
/// reading the clock for each write.
int Space::flush(Clock::duration timeout) {
  return connection_.flush(maps_ ? fabric::Deadline{} : time_after(timeout)).error;
}

bool Space::peer_left() {
  return closed_ || own_page_.closed.load(std::memory_order_acquire) != 0 || connection_.peer_gone();  // WINDOW-TABLE
}

int Space::write_to(std::uint64_t local, std::size_t bytes, std::uint64_t remote, RmaOptions options) {
  return transfer({.offset = local}, bytes, remote, true, options);
}

int Space::read_from(std::uint64_t local, std::size_t bytes, std::uint64_t remote, RmaOptions options) {
  return transfer({.offset = local}, bytes, remote, false, options);
}

int Space::write_to(std::span<const std::byte> source, std::uint64_t remote, RmaOptions options) {
  if (!source.empty() && !memory::is_there(source, memory::Access::read)) return EFAULT;
  return transfer({.memory = const_cast<std::byte*>(source.data())}, source.size(), remote, true, options);
}

int Space::read_from(std::span<std::byte> destination, std::uint64_t remote, RmaOptions options) {
  if (!destination.empty() && !memory::is_there(destination, memory::Access::write)) return EFAULT;
  return transfer({.memory = destination.data()}, destination.size(), remote, false, options);
}

int Space::look(View& view, bool both) {
  view.remote = remote_.windows();
  if (view.remote == nullptr) return ENOMEM;
  int error = 0;
  if (both) view.local = local_.pieces(error);
  return error;
}

int Space::transfer(const LocalEnd& local, std::size_t bytes, std::uint64_t remote, bool writing, RmaOptions options) {
  if (bytes == 0) return EINVAL;
  if (peer_left()) return ECONNRESET;
  // A forked child's calls are not counted, because its parent keeps counting. They are complete when they return.
  const bool counted = !origin_.inherited();
  const std::uint64_t call = counted ? completions_.start() : 0;
  View view;
  int error = look(view, local.memory == nullptr);
  if (error == 0 && local.memory == nullptr) {
    error = check(*view.local, local.offset, bytes, writing ? PROT_READ : PROT_WRITE, local_of);
  }
  if (error == 0) error = check(*view.remote, remote, bytes, writing ? PROT_WRITE : PROT_READ, remote_of);
  if (error == 0) error = move_in_order(view, local, bytes, remote, writing, options);
  if (counted) completions_.finish(call);
  return error;
}

int Space::move_in_order(const View& view, const LocalEnd& local, std::size_t bytes, std::uint64_t remote, bool writing,
                         RmaOptions options) {
  std::size_t first = 0;
  if (options.ordered) {
    const std::uint64_t near = local.memory == nullptr ? local.offset : reinterpret_cast<std::uint64_t>(local.memory);
    first = before_last_line(writing ? remote : near, bytes);
    if (const int error = move_parts(view, local, {0, first}, remote, writing, true); error != 0) return error;
    // outside: orders the last line after the others, for the program at the other end that polls it.
    std::atomic_thread_fence(std::memory_order_release);
  }
  // Only a write on a put fabric may complete later: the word that reports completion follows it. On a load/store
  // fabric only memory that is not mapped there needs a flush.
  const bool later = writing && !options.complete && !maps_;
  return move_parts(view, local, {first, bytes}, remote, writing, !later);
}

/// On a network, moves parts of at most 16 MiB: kFenceTimeout then limits the time without progress, whatever the size.
int Space::move_parts(const View& view, const LocalEnd& local, Part part, std::uint64_t remote, bool writing,
                      bool completes) {
  constexpr std::size_t kMost = std::size_t{16} << 20;
  if (maps_) {
    const int error = move(view, local, part, remote, writing);
    return error != 0 || !completes ? error : flush(kFenceTimeout);
  }
  do {
    const Part next{part.from, part.from + std::min(part.to - part.from, kMost)};
    if (const int error = move(view, local, next, remote, writing); error != 0) return error;
    if (completes) {
      if (const int error = flush(kFenceTimeout); error != 0) return error;
    }
    part.from = next.to;
  } while (part.from < part.to);
  return 0;
}

int Space::move(const View& view, const LocalEnd& local, Part part, std::uint64_t remote, bool writing) {
  const auto access = writing ? memory::Access::read : memory::Access::write;
  for (std::size_t at = part.from; at < part.to;) {
    RemoteWindow& far = **holder(*view.remote, remote + at, remote_of);
    const std::uint64_t far_at = remote + at - far.offset;
    std::size_t bytes = std::min(part.to - at, far.bytes - far_at);
    std::byte* near = nullptr;
    if (local.memory != nullptr) {
      near = local.memory + at;
    } else {
      const LocalPiece& piece = *holder(*view.local, local.offset + at, local_of);
      const std::uint64_t near_at = local.offset + at - piece.offset;
      bytes = std::min(bytes, piece.bytes - near_at);
      near = piece.view + near_at;
      piece.exposed->prepare();
      if (!piece.lasting && !memory::populate({near, bytes}, access)) return EFAULT;
    }
    int error = 0;
    memory::RemoteRegion* reached = far.reach(exposure_, error);
    if (reached == nullptr) return error;
    std::byte* const mapped = reached->map();
    if (mapped == nullptr) {
      const bool staged = local.memory != nullptr && !connection_.sends_any_memory();
      error = staged ? move_staged(*reached, far_at, {near, bytes}, writing)
                     : request(*reached, far_at, {near, bytes}, writing);
      if (error != 0) return error;
    } else if (writing) {
      arch::copy_into(mapped + far_at, near, bytes);
    } else {
      arch::copy_out_of(near, mapped + far_at, bytes);
    }
    at += bytes;
  }
  return 0;
}

/// Lets the fabric move the bytes, once its queue has room.
int Space::request(memory::RemoteRegion& reached, std::uint64_t offset, std::span<std::byte> near, bool writing) {
  const auto deadline = time_after(kFenceTimeout);
  for (Backoff backoff; !reached.has_room(); backoff.pause()) {
    if (peer_left()) return ECONNRESET;
    if (Clock::now() > deadline) return ETIMEDOUT;
  }
  if (writing ? reached.put(offset, near) : reached.get(near, offset)) return 0;
  return peer_left() ? ECONNRESET : EFAULT;
}

/// Moves the bytes through memory that the fabric can send from. Complete when this returns.
int Space::move_staged(memory::RemoteRegion& reached, std::uint64_t offset, std::span<std::byte> near, bool writing) {
  constexpr std::size_t kMost = std::size_t{256} << 10;
  std::optional<LateBuffers::Slot> buffer;
  try {
    buffer.emplace(connection_.buffer(std::min(near.size(), kMost)));
  } catch (const std::exception&) {
    return ENOMEM;
  }
  while (!near.empty()) {
    const std::span part(buffer->bytes(), std::min(near.size(), kMost));
    if (writing) arch::copy_into(part.data(), near.data(), part.size());
    int error = request(reached, offset, part, writing);
    if (error == 0) {
      error = flush(kFenceTimeout);
      if (error == ETIMEDOUT) late_.keep(*buffer);
    }
    if (error != 0) return error;
    if (!writing) arch::copy_out_of(near.data(), part.data(), part.size());
    offset += part.size();
    near = near.subspan(part.size());
  }
  return 0;
}

Mark Space::mark(bool of_peer) const {
  return {.of_peer = of_peer,
          .calls = of_peer ? own_page_.started.load(std::memory_order_acquire)  // WINDOW-RMA
                           : completions_.started()};
}

int Space::wait(Mark mark, Clock::duration timeout, const GiveUp& give_up) {
  const auto deadline = time_after(timeout);
  if (!mark.of_peer) {
    if (mark.calls > completions_.started()) return EINVAL;
    if (!origin_.inherited() && !completions_.wait(mark.calls, deadline)) return ETIMEDOUT;
    return connection_.flush(deadline).error;
  }
  if (mark.calls > own_page_.started.load(std::memory_order_acquire)) return EINVAL;  // WINDOW-RMA
  const auto complete = [&] {
    return own_page_.completed.load(std::memory_order_acquire) >= mark.calls;  // WINDOW-RMA
  };
  for (Backoff backoff; !complete(); backoff.pause()) {
    // Calls that the peer completed before it left are visible once it is seen to have left.
    if (peer_left()) return complete() ? 0 : ECONNRESET;
    if (give_up && give_up()) return complete() ? 0 : ECANCELED;
    if (Clock::now() > deadline) return ETIMEDOUT;
  }
  return 0;
}

int Space::signal(bool of_peer, const std::optional<Signal>& local, const std::optional<Signal>& remote,
                  Clock::duration timeout, const GiveUp& give_up) {
  for (const auto* signal : {&local, &remote}) {
    if (signal->has_value() && (*signal)->offset % 4 != 0) return EINVAL;
  }
  if (peer_left()) return ECONNRESET;
  View view;
  if (const int error = look(view, local.has_value()); error != 0) return error;
  int error = local ? check(*view.local, local->offset, sizeof local->value, PROT_WRITE, local_of) : 0;
  if (error == 0 && remote) error = check(*view.remote, remote->offset, sizeof remote->value, PROT_WRITE, remote_of);
  if (error == 0) error = wait(mark(of_peer), timeout, give_up);
  if (error == 0 && local) error = store_near(view, *local);
  if (error == 0 && remote) error = store_far(view, *remote);
  return error;
}

namespace {

/// Stores eight bytes: in one store if aligned, else in two.
void store_release(std::byte* to, std::uint64_t value) {
  if (reinterpret_cast<std::uintptr_t>(to) % sizeof value == 0) {
    reinterpret_cast<layout::Word*>(to)->store(value, std::memory_order_release);  // SIGNAL
    return;
  }
  auto* const halves = reinterpret_cast<std::atomic<std::uint32_t>*>(to);
  halves[1].store(static_cast<std::uint32_t>(value >> 32), std::memory_order_release);  // SIGNAL
  halves[0].store(static_cast<std::uint32_t>(value), std::memory_order_release);        // SIGNAL
}

}  // namespace

int Space::store_near(const View& view, const Signal& signal) {
  const LocalPiece& piece = *holder(*view.local, signal.offset, local_of);
  const std::uint64_t at = signal.offset - piece.offset;
  if (piece.bytes - at < sizeof signal.value) return ENXIO;
  if (!piece.lasting && !memory::populate({piece.view + at, sizeof signal.value}, memory::Access::write)) return EFAULT;
  store_release(piece.view + at, signal.value);
  return 0;
}

int Space::store_far(const View& view, const Signal& signal) {
  RemoteWindow& window = **holder(*view.remote, signal.offset, remote_of);
  const std::uint64_t at = signal.offset - window.offset;
  if (window.bytes - at < sizeof signal.value) return ENXIO;
  int error = 0;
  memory::RemoteRegion* reached = window.reach(exposure_, error);
  if (reached == nullptr) return error;
  if (reached->map() != nullptr) {
    store_release(reached->map() + at, signal.value);
    return 0;
  }
  if (at % sizeof signal.value == 0) return reached->signal(at, signal.value) ? 0 : EFAULT;
  // No fabric stores an unaligned word: it is written as bytes, after a flush of everything before.
  if (const int failed = flush(kFenceTimeout); failed != 0) return failed;
  std::uint64_t value = signal.value;
  return move_staged(*reached, at, std::as_writable_bytes(std::span(&value, 1)), true);
}

Space::Mapped Space::map(std::byte* where, std::uint64_t remote, std::size_t bytes, int protection) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (bytes == 0 || bytes % page != 0 || remote % page != 0 || reinterpret_cast<std::uintptr_t>(where) % page != 0 ||
      protection == 0 || (protection & ~(PROT_READ | PROT_WRITE)) != 0) {
    return {.error = EINVAL};
  }
  if (peer_left()) return {.error = ECONNRESET};
  View view;
  int error = look(view, false);
  if (error == 0) error = check(*view.remote, remote, bytes, protection, remote_of);
  if (error != 0) return {.error = error};
  const bool reserve = where == nullptr;
  if (reserve) {
    where = reserve_addresses(bytes);
    if (where == nullptr) return {.error = ENOMEM};
  }
  error = map_windows(view, {where, bytes}, remote, protection);
  if (error == 0) return {.error = 0, .start = where};
  if (reserve) unmap(where, bytes);
  return {.error = error};
}

int Space::map_windows(const View& view, std::span<std::byte> where, std::uint64_t remote, int protection) {
  auto window = holder(*view.remote, remote, remote_of);
  for (; !where.empty(); ++window) {
    RemoteWindow& far = **window;
    const std::uint64_t at = remote - far.offset;
    const std::size_t bytes = std::min<std::uint64_t>(where.size(), far.bytes - at);
    int error = 0;
    memory::RemoteRegion* reached = far.reach(exposure_, error);
    if (reached == nullptr) return error;
    // The owner withdraws a window and then reads the mark. Either it sees the mark, and the pages stay; or this side
    // sees that the window is gone.
    const Entry entry{.index = far.index, .sequence = far.sequence};
    references_->add(entry);
    arch::publish_then_look();  // WINDOW-MARK: pairs with the fence in LocalTable::release
    if (own_page_.sequences[far.index].load(std::memory_order_acquire) != far.sequence) {  // WINDOW-ENTRY
      references_->remove(entry);
      return ENXIO;
    }
    error = Mappings::instance().map(where.first(bytes), references_, entry,
                                     [&] { return reached->map_at(at, bytes, protection, where.data()); });
    if (error != 0) return error == ENOTSUP || error == ENXIO ? error : ENOMEM;
    where = where.subspan(bytes);
    remote += bytes;
  }
  return 0;
}

}  // namespace wherry::window
