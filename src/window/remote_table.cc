// SPDX-License-Identifier: Apache-2.0
#include "window/remote_table.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

namespace wherry::window {
namespace {

bool makes_sense(const RemoteWindow::Entry& entry, std::uint64_t protection) {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return entry.bytes != 0 && entry.bytes % page == 0 && entry.offset % page == 0 && entry.offset <= INT64_MAX &&
         entry.bytes <= INT64_MAX - entry.offset && (protection & ~std::uint64_t{PROT_READ | PROT_WRITE}) == 0;
}

using Window = std::shared_ptr<RemoteWindow>;

/// Returns the first window that begins after `offset`.
RemoteWindows::iterator behind(RemoteWindows& windows, std::uint64_t offset) {
  return std::upper_bound(windows.begin(), windows.end(), offset,
                          [](std::uint64_t at, const Window& window) { return at < window->offset; });
}

/// Inserts a window, unless it overlaps another: then the peer contradicts itself, and the first entry counts.
void insert(RemoteWindows& windows, Window window) {
  const auto next = behind(windows, window->offset);
  if (next != windows.end() && (*next)->offset - window->offset < window->bytes) return;
  if (next != windows.begin()) {
    const RemoteWindow& before = **std::prev(next);
    if (window->offset - before.offset < before.bytes) return;
  }
  windows.insert(next, std::move(window));
}

}  // namespace

memory::RemoteRegion* RemoteWindow::reach(fabric::Exposure* exposure, int& error) {
  // WINDOW-REACHED acquire: the object that it points to.
  if (memory::RemoteRegion* ready = ready_.load(std::memory_order_acquire); ready != nullptr) return ready;
  const std::lock_guard lock(mutex_);
  error = ENXIO;
  if (reached_ == nullptr && exposure != nullptr) reached_ = exposure->reach(key_, bytes, error);
  ready_.store(reached_.get(), std::memory_order_release);  // WINDOW-REACHED
  return reached_.get();
}

std::shared_ptr<const RemoteWindows> RemoteTable::windows() {
  const std::uint64_t changes = own_page_.changes.load(std::memory_order_acquire);  // WINDOW-TABLE
  const std::lock_guard lock(mutex_);
  if (changes != changes_) {
    try {
      refresh(layout::windows_used(changes));
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    changes_ = changes;
  }
  return windows_;
}

void RemoteTable::refresh(std::size_t used) {
  auto fresh = std::make_shared<RemoteWindows>();
  used = std::min(used, layout::kMostWindows);
  std::vector<bool> known(used);
  for (const Window& window : *windows_) {
    if (window->index >= used) continue;
    // WINDOW-ENTRY acquire: pairs with the release in LocalTable::announce.
    known[window->index] = own_page_.sequences[window->index].load(std::memory_order_acquire) == window->sequence;
    if (known[window->index]) fresh->push_back(window);
  }
  for (std::size_t index = 0; index < used; ++index) {
    const std::uint64_t sequence = own_page_.sequences[index].load(std::memory_order_acquire);  // WINDOW-ENTRY
    RemoteWindow::Entry entry;
    if (known[index] || !read(index, sequence, entry)) continue;
    insert(*fresh, std::make_shared<RemoteWindow>(index, entry));
  }
  windows_ = std::move(fresh);
}

/// Reads an entry. False: it is unused, invalid, or just being changed; another change of the table follows then.
bool RemoteTable::read(std::size_t index, std::uint64_t sequence, RemoteWindow::Entry& entry) const {
  if (sequence % 2 == 0) return false;
  const layout::WindowEntry& words = own_page_.entries[index];
  // WINDOW-ENTRY acquire: the second load of the sequence comes after these loads.
  const auto load = [](const layout::Word& word) { return word.load(std::memory_order_acquire); };
  const std::uint64_t protection = load(words.protection);
  entry = {.sequence = sequence,
           .offset = load(words.offset),
           .bytes = load(words.bytes),
           .key = {load(words.place), load(words.kind)},
           .protection = static_cast<int>(protection & 3)};
  return own_page_.sequences[index].load(std::memory_order_relaxed) == sequence && makes_sense(entry, protection);
}

}  // namespace wherry::window
