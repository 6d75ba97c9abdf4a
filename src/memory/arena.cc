// SPDX-License-Identifier: Apache-2.0
#include "memory/arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <wherry/error.hpp>

#include "base/fork_generation.hpp"
#include "base/refused_call.hpp"
#include "memory/huge_pages.hpp"
#include "memory/page_exchange.hpp"

namespace wherry::memory {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
/// Least gap between the places of memory that is not adjacent. If the caller enlarges a mapping of the arena in place,
/// as realloc does, the new part is then a place without a user.
constexpr std::uint64_t kLeastGap = std::uint64_t{1} << 30;
constexpr std::uint64_t kGapFactor = 16;

[[noreturn]] void fail(int error, const char* what, const std::string& advice) { throw Error(error, what, "", advice); }

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

std::shared_ptr<ArenaView> make_arena() {
  UniqueFd memfd(::memfd_create("wherry.arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memfd.valid()) fail(errno, "create exposed memory", advice_on(errno, "memfd_create"));
  rlimit file_size{};
  ::getrlimit(RLIMIT_FSIZE, &file_size);
  const std::uint64_t bytes = std::min<std::uint64_t>(kMostBytes, file_size.rlim_cur) / kArenaChunk * kArenaChunk;
  constexpr const char* kRaise = "raise the limit of file sizes (ulimit -f)";
  if (bytes == 0) fail(EFBIG, "create exposed memory", kRaise);
  if (::ftruncate(memfd.get(), static_cast<off_t>(bytes)) != 0) {
    fail(errno, "create exposed memory", errno == EFBIG ? kRaise : advice_on(errno, "ftruncate"));
  }
  if (::fcntl(memfd.get(), F_ADD_SEALS, kSeals) != 0) {
    fail(errno, "seal shared memory", "the kernel must support memfd seals");
  }
  int error = 0;
  auto view = view_arena(std::move(memfd), bytes, error);
  if (view == nullptr) fail(error, "create exposed memory", "memfds must be on tmpfs");
  return view;
}

}  // namespace

/// A part of the memory to expose, within one mapping.
struct Arena::Part {
  std::uintptr_t start;
  std::size_t bytes;
  int protection;
  KeyKind kind;
  std::uint64_t place;
  bool in_arena;
  MappedRange mapping;      ///< the mapping that it lies in
  ArenaView::Range view{};  ///< of moved memory, until the whole region has its views
};

class Arena::ArenaLocalRegion final : public LocalRegion {
 public:
  explicit ArenaLocalRegion(Arena& arena) : arena_(arena) {}
  ~ArenaLocalRegion() override;

  [[nodiscard]] std::span<const Piece> pieces() const override { return pieces_; }
  void prepare() noexcept override;
  void keep() noexcept override;
  /// Appends a part to the pieces. With the arena locked.
  void add(const Part& part);
  /// Maps a view of each piece that is in the arena. Throws Error(ENOMEM).
  void make_views();

 private:
  Arena& arena_;
  std::vector<Piece> pieces_;
  std::atomic<bool> prepared_{false};
  std::vector<std::shared_ptr<ArenaView::Chunks>> chunks_;
};

Arena::ArenaLocalRegion::~ArenaLocalRegion() {
  const std::lock_guard lock(arena_.mutex_);
  for (const Piece& piece : pieces_) {
    if (kind_of(piece.key) == KeyKind::arena) arena_.used_.remove(piece.key.place, piece.key.place + piece.bytes);
  }
  if (arena_.used_.idle_bytes() > arena_.idle_left_ + kMostIdle) arena_.give_up_unmapped();
}

void Arena::ArenaLocalRegion::prepare() noexcept {
  if (prepared_.load(std::memory_order_relaxed) || prepared_.exchange(true)) return;
  for (const Piece& piece : pieces_) {
    if (piece.lasting) prepare_view(piece.view, piece.bytes);
  }
}

void Arena::ArenaLocalRegion::keep() noexcept {
  const std::lock_guard lock(arena_.mutex_);
  for (const Piece& piece : pieces_) {
    if (kind_of(piece.key) == KeyKind::arena) arena_.used_.keep(piece.key.place, piece.key.place + piece.bytes);
  }
}

void Arena::ArenaLocalRegion::add(const Part& part) {
  const RemoteKey key = arena_.view_->key_of(part.place, part.kind);
  if (part.kind == KeyKind::arena) arena_.used_.add(part.place, part.place + part.bytes);
  if (!pieces_.empty() && pieces_.back().key.kind == key.kind &&
      pieces_.back().key.place + pieces_.back().bytes == part.place) {
    pieces_.back().bytes += part.bytes;
    return;
  }
  pieces_.push_back({.bytes = part.bytes, .key = key, .view = std::bit_cast<std::byte*>(part.start)});
}

void Arena::ArenaLocalRegion::make_views() {
  for (Piece& piece : pieces_) {
    if (kind_of(piece.key) != KeyKind::arena) continue;
    auto range = arena_.view_->map(piece.key.place, piece.bytes);
    if (range.start == nullptr) fail(ENOMEM, "map exposed memory", "expose less, or raise vm.max_map_count");
    piece.view = range.start;
    piece.lasting = true;
    chunks_.push_back(std::move(range.chunks));
  }
}

std::atomic<Arena*>& Arena::current() {
  static constinit std::atomic<Arena*> arena{nullptr};
  return arena;
}

// Never destroyed: windows in static objects may outlive main(), and a forked child keeps its parent's arena.
Arena& Arena::instance() {
  if (Arena* arena = current().load(std::memory_order_acquire); arena != nullptr) return *arena;  // ARENA
  handle_forks();
  const std::lock_guard lock(making());
  if (Arena* arena = current().load(std::memory_order_acquire); arena != nullptr) return *arena;  // ARENA
  auto* const arena = new Arena;
  current().store(arena, std::memory_order_release);  // ARENA
  return *arena;
}

std::mutex& Arena::making() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

Arena::Arena() : view_(make_arena()), generation_(fork_generation()) {
  const int error = map_.error();
  if (error != 0) fail(error, "create exposed memory", advice_on(error, "open of /proc/self/maps"));
}

bool Arena::exposes(const RemoteKey& key, std::size_t bytes) {
  if (!view_->may_hold(key, bytes)) return false;
  const std::lock_guard lock(mutex_);
  return kind_of(key) == KeyKind::address || used_.in_use(key.place, key.place + bytes);
}

std::shared_ptr<LocalRegion> Arena::expose(std::span<std::byte> memory) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (memory.empty() || memory.size() % page != 0 || reinterpret_cast<std::uintptr_t>(memory.data()) % page != 0) {
    fail(EINVAL, "expose memory", "it starts at a multiple of the page size and is whole pages");
  }
  auto exposed = std::make_shared<ArenaLocalRegion>(*this);  // before the lock, and so destroyed after it
  const std::lock_guard lock(mutex_);
  std::vector<Part> parts = parts_of(memory);
  for (Part& part : parts) {
    if (part.kind == KeyKind::arena && !part.in_arena) move(part);
    exposed->add(part);
  }
  exposed->make_views();
  return exposed;
}

std::vector<Arena::Part> Arena::parts_of(std::span<std::byte> memory) const {
  std::vector<Part> parts;
  const auto end = reinterpret_cast<std::uintptr_t>(memory.data()) + memory.size();
  for (auto at = reinterpret_cast<std::uintptr_t>(memory.data()); at < end;) {
    const auto range = map_.at(at);
    if (!range || (range->protection & PROT_READ) == 0) {
      fail(EFAULT, "expose memory", "all of it must be mapped and readable");
    }
    const std::size_t bytes = std::min(range->end, end) - at;
    Part part{.start = at,
              .bytes = bytes,
              .protection = range->protection,
              .kind = KeyKind::address,
              .place = at,
              .in_arena = is_ours(*range),
              .mapping = *range};
    if (part.in_arena) part.place = range->offset_of(at);
    if (part.in_arena || (!range->shared && (range->protection & PROT_WRITE) != 0)) part.kind = KeyKind::arena;
    parts.push_back(part);
    at += bytes;
  }
  return parts;
}

/// Replaces the caller's pages by pages of the arena, with their content. If the kernel refuses (huge pages of
/// hugetlbfs), the memory stays where it is, and its key has its address.
void Arena::move(Part& part) {
  const std::uint64_t place = find_place(part);
  PageExchange exchange{.arena = *view_,
                        .memory = {std::bit_cast<std::byte*>(part.start), part.bytes},
                        .place = place,
                        .view = nullptr,
                        .protection = part.protection,
                        .is_plain = part.mapping.file == FileIdentity{},
                        .advice = advice_of(map_, part.mapping)};
  if (exchange.is_plain) {
    part.view = view_->map(place, part.bytes);
    if (part.view.start == nullptr) fail(ENOMEM, "map exposed memory", "expose less, or raise vm.max_map_count");
    exchange.view = part.view.start;
    const std::span view(part.view.start, part.bytes);
    exchange.has_huge = !bring_in_huge_pages(view_->descriptor(), place, view).empty();
  }
  const Exchanged done = exchange_pages(exchange);
  if (done.bytes == part.bytes) {
    part.place = place;
    return;
  }
  punch(place + done.bytes, part.bytes - done.bytes);
  if (done.bytes != 0) {  // these pages stay the caller's memory: they become idle
    used_.add(place, place + done.bytes);
    used_.remove(place, place + done.bytes);
  }
  if (done.guard_error != 0) fail(done.guard_error, "expose memory", advice_on(done.guard_error, "userfaultfd"));
  if (done.copy_error != 0) {
    fail(done.copy_error, "expose memory", "it must be readable, and the machine must have that much memory free");
  }
  if (done.map_error != EINVAL || done.bytes != 0) {
    fail(ENOMEM, "expose memory",
         "too many mappings (vm.max_map_count) or too much locked memory (ulimit -l); expose larger ranges, or less");
  }
  part.kind = KeyKind::address;
}

/// Returns a place for the part. It follows the memory before it if that was moved last, so that both stay one mapping.
std::uint64_t Arena::find_place(const Part& part) {
  const auto before = map_.at(part.start - 1);
  if (!before || !is_ours(*before) || before->offset_of(part.start - 1) + 1 != cursor_) {
    cursor_ = round_up(cursor_ + (cursor_ == 0 ? 0 : std::max(kLeastGap, kGapFactor * last_bytes_)), kArenaChunk);
    last_bytes_ = 0;
  }
  if (!view_->holds(cursor_, part.bytes))
    fail(ENOMEM, "expose memory",
         "this process has used all places of its arena; raise the limit of file sizes (ulimit -f) and restart it");
  last_bytes_ += part.bytes;
  return std::exchange(cursor_, cursor_ + part.bytes);
}

/// Returns the caller's mappings of the arena, without the views of it, sorted by place. Empty: the kernel does not
/// report mappings.
std::optional<std::vector<MappedRange>> Arena::callers_mappings(const AddressMap& map) const {
  std::vector<MappedRange> mappings;
  const auto views = view_->mapped();
  const auto all = map.all();
  if (!all) return std::nullopt;
  for (const MappedRange& range : *all) {
    if (!is_ours(range)) continue;
    // The kernel may have merged a view and an adjacent mapping of the caller.
    std::uintptr_t at = range.start;
    const auto add_to = [&](std::uintptr_t end) {
      if (end <= at) return;
      mappings.push_back(range);
      mappings.back().start = at;
      mappings.back().end = end;
      mappings.back().offset = range.offset_of(at);
    };
    for (const auto& view : views) {
      const auto start = reinterpret_cast<std::uintptr_t>(view.data());
      if (start + view.size() <= at || start >= range.end) continue;
      add_to(start);
      at = start + view.size();
    }
    add_to(range.end);
  }
  std::sort(mappings.begin(), mappings.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  return mappings;
}

/// Returns the pages of idle places that the caller no longer maps: they would never be used again. A forked child
/// leaves its parent's arena alone.
void Arena::give_up_unmapped() {
  if (fork_generation() != generation_) return;
  std::optional<std::vector<MappedRange>> mapped;
  {
    const std::lock_guard lock(views_mutex());
    mapped = callers_mappings(map_);
  }
  if (!mapped) return;
  for (const auto& idle : used_.idle()) {
    std::uint64_t at = idle.start;
    const auto give_up_to = [&](std::uint64_t end) {
      if (end <= at) return;
      punch(at, end - at);
      used_.forget(at, end);
    };
    for (const MappedRange& range : *mapped) {
      if (range.offset_of(range.end) <= at || range.offset >= idle.end) continue;
      give_up_to(range.offset);
      at = std::max(at, range.offset_of(range.end));
    }
    give_up_to(idle.end);
  }
  idle_left_ = used_.idle_bytes();
}

void Arena::punch(std::uint64_t place, std::uint64_t bytes) {
  ::fallocate(view_->descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(place),
              static_cast<off_t>(bytes));
}

}  // namespace wherry::memory
