// SPDX-License-Identifier: Apache-2.0
#include "memory/arena_view.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "memory/huge_pages.hpp"
#include "memory/populate.hpp"
#include "memory/sealed_memory.hpp"

namespace wherry::memory {
namespace {

std::atomic<std::size_t> chunks_mapped{0};

std::size_t chunks_of(std::size_t bytes) { return bytes / kArenaChunk; }

}  // namespace

ArenaView::Chunks::~Chunks() {
  ::munmap(bytes_.data(), bytes_.size());
  chunks_mapped -= chunks_of(bytes_.size());
}

ArenaView::ArenaView(UniqueFd memfd, std::uint64_t bytes)
    : memfd_(std::move(memfd)), file_(identity_of(memfd_.get())), bytes_(bytes) {}

std::mutex& views_mutex() {
  static std::mutex& mutex = *new std::mutex;  // never destroyed: views may live in static objects
  return mutex;
}

void prepare_view(std::byte* start, std::size_t bytes) noexcept {
  populate({start, std::min(bytes, ArenaView::kMostAhead)}, Access::write);
}

ArenaView::Range ArenaView::map(std::uint64_t place, std::size_t bytes) {
  if (bytes == 0 || !holds(place, bytes)) return {};
  const ChunkRange wanted{place / kArenaChunk, (place + bytes - 1) / kArenaChunk};
  auto chunks = find_or_map(wanted);
  std::byte* start = chunks == nullptr ? nullptr : chunks->start() + (place - wanted.first * kArenaChunk);
  return {std::move(chunks), start};
}

std::shared_ptr<ArenaView::Chunks> ArenaView::find_or_map(const ChunkRange& wanted) {
  const std::size_t bytes = (wanted.second - wanted.first + 1) * kArenaChunk;
  const std::lock_guard lock(views_mutex());
  auto& known = mapped_[wanted];
  if (auto chunks = known.lock()) return chunks;
  std::erase_if(mapped_, [&](const auto& entry) { return entry.first != wanted && entry.second.expired(); });
  if (chunks_mapped + chunks_of(bytes) > kMostArenaChunks) return nullptr;
  std::byte* const start = map_for_huge_pages(memfd_.get(), wanted.first * kArenaChunk, bytes, PROT_READ | PROT_WRITE,
                                              MAP_SHARED | MAP_NORESERVE);
  if (start == nullptr) return nullptr;
  chunks_mapped += chunks_of(bytes);
  auto chunks = std::make_shared<Chunks>(start, bytes);
  known = chunks;
  return chunks;
}

std::vector<std::span<const std::byte>> ArenaView::mapped() const {
  std::vector<std::span<const std::byte>> all;
  for (const auto& [key, known] : mapped_) {
    if (const auto chunks = known.lock()) all.emplace_back(chunks->start(), chunks->size());
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.data() < b.data(); });
  return all;
}

bool ArenaView::may_hold(const RemoteKey& key, std::size_t bytes) const {
  if (bytes == 0 || key.kind != key_of(0, kind_of(key)).kind) return false;
  if (kind_of(key) == KeyKind::arena) return holds(key.place, bytes);
  return kind_of(key) == KeyKind::address && key.place <= UINT64_MAX - bytes;
}

int ArenaView::map_at(std::uint64_t place, std::size_t bytes, int protection, std::byte* where) const {
  if (!holds(place, bytes)) return ENXIO;
  const int ahead = bytes <= kMostAhead ? MAP_POPULATE : 0;
  void* got = ::mmap(where, bytes, protection, MAP_SHARED | MAP_FIXED | ahead, memfd_.get(), static_cast<off_t>(place));
  return got == MAP_FAILED ? errno : 0;
}

namespace {

/// All views. A view lives as long as a connection or a window uses it. Guarded by views_mutex(). The map is never
/// destroyed: static objects may hold views.
std::map<FileIdentity, std::weak_ptr<ArenaView>>& views() {
  static auto& views = *new std::map<FileIdentity, std::weak_ptr<ArenaView>>;
  return views;
}

}  // namespace

std::shared_ptr<ArenaView> view_arena(UniqueFd memfd, std::uint64_t bytes, int& error) {
  error = EPROTO;
  if (bytes % kArenaChunk != 0 || bytes == 0 || !is_sealed_memory(memfd.get(), bytes)) return nullptr;
  error = 0;
  const FileIdentity file = identity_of(memfd.get());
  const std::lock_guard lock(views_mutex());
  std::erase_if(views(), [](const auto& entry) { return entry.second.expired(); });
  auto& known = views()[file];
  auto view = known.lock();
  if (view == nullptr) known = view = std::make_shared<ArenaView>(std::move(memfd), bytes);
  return view;
}

bool is_known_arena(const FileIdentity& file) {
  const std::lock_guard lock(views_mutex());
  const auto known = views().find(file);
  return known != views().end() && !known->second.expired();
}

}  // namespace wherry::memory
