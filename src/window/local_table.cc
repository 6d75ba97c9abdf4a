// SPDX-License-Identifier: Apache-2.0
#include "window/local_table.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <new>
#include <utility>

#include <wherry/error.hpp>

#include "base/clock.hpp"
#include "window/space.hpp"

namespace wherry::window {
namespace {

bool is_pages(std::uint64_t number) { return number % static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) == 0; }

/// Returns the errno value of what `call` throws, else 0.
template <class Call>
int error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code().value();
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  return 0;
}

}  // namespace

int LocalTable::add(std::span<std::byte> memory, std::optional<std::uint64_t> wanted, int protection,
                    std::uint64_t& offset) {
  if (memory.empty() || !is_pages(memory.size()) || !is_pages(reinterpret_cast<std::uintptr_t>(memory.data())) ||
      protection == 0 || (protection & ~(PROT_READ | PROT_WRITE)) != 0) {
    return EINVAL;
  }
  if (exposure_ == nullptr) return ENOTSUP;
  const std::lock_guard lock(mutex_);
  if (closed_) return ECONNRESET;
  if (const int error = choose(wanted, memory.size(), offset); error != 0) return error;
  int unknown = 0;
  const int error = error_of([&] {
    Window window{
        .bytes = memory.size(), .protection = protection, .exposed = exposure_->expose(memory), .entries = {}};
    const std::size_t pieces = window.exposed->pieces().size();
    release_leaving();
    if (pieces > free_.size() + (layout::kMostWindows - sequences_.size())) throw std::bad_alloc();
    window.entries.reserve(pieces);
    sequences_.reserve(sequences_.size() + pieces);
    free_.reserve(sequences_.size() + pieces);
    LateBuffers::Slot staging(peers_.staging(pieces));
    const auto deadline = time_after(Space::kFenceTimeout);
    // From here on the only possible failure is a missing acknowledgement.
    const auto [added, is_new] = windows_.emplace(offset, std::move(window));
    unknown = announce(offset, added->second, staging, deadline);
    if (unknown != 0) (void)withdraw(added, std::next(added), deadline);
    drop_pieces();
  });
  return error != 0 ? error : unknown;
}

bool LocalTable::is_free(const Windows& windows, std::uint64_t offset, std::uint64_t bytes) {
  const auto next = windows.lower_bound(offset);
  if (next != windows.end() && next->first - offset < bytes) return false;
  if (next == windows.begin()) return true;
  const auto before = std::prev(next);
  return offset - before->first >= before->second.bytes;
}

int LocalTable::choose(std::optional<std::uint64_t> wanted, std::uint64_t bytes, std::uint64_t& offset) {
  if (!wanted) {
    if (bytes > kFirstChosenOffset - next_chosen_) return ENOMEM;
    offset = kFirstChosenOffset + std::exchange(next_chosen_, next_chosen_ + bytes);
    return 0;
  }
  offset = *wanted;
  if (!is_pages(offset) || offset > UINT64_MAX / 2 || bytes > UINT64_MAX / 2 - offset) return EINVAL;
  if (offset + bytes > kFirstChosenOffset || !is_free(windows_, offset, bytes)) return EADDRINUSE;
  release_leaving();
  return is_free(leaving_, offset, bytes) ? 0 : EBUSY;
}

/// Stores the window's entries in the peer's page. ETIMEDOUT: the peer may not know yet.
int LocalTable::announce(std::uint64_t offset, Window& window, LateBuffers::Slot& staging,
                         const fabric::Deadline& deadline) noexcept {
  std::byte* staged = staging.bytes();
  for (const auto& piece : window.exposed->pieces()) {
    std::uint32_t entry = 0;
    if (free_.empty()) {
      entry = static_cast<std::uint32_t>(sequences_.size());
      sequences_.push_back(0);
    } else {
      entry = free_.back();
      free_.pop_back();
    }
    window.entries.push_back(entry);
    const PeersPage::EntryWords words{offset, piece.bytes, piece.key.place, piece.key.kind,
                                      static_cast<std::uint64_t>(window.protection)};
    peers_.store_entry(entry, words, ++sequences_[entry], staged);  // WINDOW-ENTRY
    if (staged != nullptr) staged += sizeof words;
    offset += piece.bytes;
  }
  const int error = publish_changes(deadline);
  if (error == ETIMEDOUT) late_.keep(staging);
  return error;
}

/// Publishes the changes. 0: the peer knows, or is gone. ETIMEDOUT: it may learn later.
int LocalTable::publish_changes(const fabric::Deadline& deadline) noexcept {
  store_changes();
  if (connection_.map() != nullptr) return 0;
  const int error = connection_.flush(deadline).error;
  return error == ETIMEDOUT ? error : 0;
}

void LocalTable::store_changes() noexcept {
  peers_.store_changes(layout::window_changes(++changes_, sequences_.size()));  // WINDOW-TABLE
}

int LocalTable::remove(std::uint64_t offset, std::uint64_t bytes) {
  if (bytes == 0 || !is_pages(bytes) || !is_pages(offset) || bytes > UINT64_MAX - offset) return EINVAL;
  const std::uint64_t end = offset + bytes;
  const std::lock_guard lock(mutex_);
  if (closed_) return ECONNRESET;
  const auto first = windows_.lower_bound(offset);
  const auto last = windows_.lower_bound(end);
  const auto reaches_beyond = [&](Windows::iterator after, std::uint64_t border) {
    if (after == windows_.begin()) return false;
    const auto& [start, window] = *std::prev(after);
    return start < border && start + window.bytes > border;
  };
  if (reaches_beyond(first, offset) || reaches_beyond(last, end)) return EINVAL;
  if (first == last) return ENXIO;
  const int error = withdraw(first, last, time_after(Space::kFenceTimeout));
  drop_pieces();
  return error;
}

void LocalTable::close() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  if (windows_.empty()) return;
  store_withdrawn(windows_.begin(), windows_.end());
  store_changes();
}

void LocalTable::remove_all() noexcept {
  const std::lock_guard lock(mutex_);
  release(windows_.begin(), windows_.end());
  drop_pieces();
}

int LocalTable::withdraw(Windows::iterator first, Windows::iterator last, const fabric::Deadline& deadline) noexcept {
  store_withdrawn(first, last);
  const int error = publish_changes(deadline);
  if (error != 0) drop_entries(first, last);
  release(first, last);
  return error;
}

void LocalTable::store_withdrawn(Windows::iterator first, Windows::iterator last) noexcept {
  for (auto window = first; window != last; ++window) {
    for (const std::uint32_t entry : window->second.entries) peers_.store_sequence(entry, ++sequences_[entry]);
  }
}

/// Releases withdrawn windows. The peer was told that they are withdrawn, or may be told late.
void LocalTable::release(Windows::iterator first, Windows::iterator last) noexcept {
  // WINDOW-MARK: the peer marks a window and then checks that it still exists. Either it sees that the window is gone,
  // or its mark is seen here.
  arch::publish_then_look();
  while (first != last) {
    const auto window = first++;
    if (!release_unmapped(window->second)) {
      window->second.exposed->keep();
      leaving_.insert(windows_.extract(window));
    } else {
      windows_.erase(window);
    }
  }
}

/// Retires entries: the peer may see a late store to an entry beside an old sequence, so they are not used again.
void LocalTable::drop_entries(Windows::iterator first, Windows::iterator last) {
  for (; first != last; ++first) first->second.entries.clear();
}

/// Frees those entries of a withdrawn window that the peer does not map. True: all of them.
bool LocalTable::release_unmapped(Window& window) {
  std::erase_if(window.entries, [this](std::uint32_t entry) {
    if (own_page_.marks[entry].load(std::memory_order_acquire) == sequences_[entry] - 1) return false;  // WINDOW-MARK
    free_.push_back(entry);
    return true;
  });
  return window.entries.empty();
}

void LocalTable::release_leaving() {
  for (auto window = leaving_.begin(); window != leaving_.end();) {
    window = release_unmapped(window->second) ? leaving_.erase(window) : std::next(window);
  }
}

std::shared_ptr<const LocalPieces> LocalTable::pieces(int& error) {
  {
    const std::lock_guard lock(pieces_mutex_);
    if (pieces_ != nullptr) return pieces_;
  }
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const LocalPieces> listed;
  error = closed_ ? ECONNRESET : error_of([&] { listed = list_pieces(); });
  const std::lock_guard pieces_lock(pieces_mutex_);
  pieces_ = listed;
  return listed;
}

std::shared_ptr<const LocalPieces> LocalTable::list_pieces() const {
  auto pieces = std::make_shared<LocalPieces>();
  pieces->reserve(windows_.size());
  for (const auto& [start, window] : windows_) {
    std::uint64_t offset = start;
    for (const auto& piece : window.exposed->pieces()) {
      pieces->push_back({.offset = offset,
                         .bytes = piece.bytes,
                         .protection = window.protection,
                         .view = piece.view,
                         .lasting = piece.lasting,
                         .exposed = window.exposed});
      offset += piece.bytes;
    }
  }
  return pieces;
}

/// Drops the snapshot. The next call of pieces() makes a new one, so many registrations in a row cost one.
void LocalTable::drop_pieces() {
  std::shared_ptr<const LocalPieces> dropped;
  const std::lock_guard lock(pieces_mutex_);
  std::swap(pieces_, dropped);
}

}  // namespace wherry::window
