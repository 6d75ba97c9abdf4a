// SPDX-License-Identifier: Apache-2.0
#include "direct_transfers.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "descriptors.hpp"
#include "direct_costs.hpp"
#include "direct_descriptors.hpp"
#include "directories.hpp"
#include "layout/write_ring.hpp"
#include "next.hpp"
#include "report.hpp"
#include "vfork.hpp"

namespace wherry::preload {
namespace {

/// Most bytes that the kernel moves in one call.
constexpr std::size_t kMostBytes = 0x7FFFF000;
constexpr std::uint64_t kPageBytes = 4096;

/// Whether the kernel counts a page that a mapping has changed until the mount has it. Since Linux 6.16 FUSE makes no
/// copies of such pages on their way.
bool counts_changed_pages() noexcept {
  static constinit std::atomic<int> known{-1};
  int counts = known.load(std::memory_order_relaxed);
  if (counts >= 0) return counts != 0;
  utsname system{};
  int major = 0;
  int minor = 0;
  const char* const end = system.release + sizeof system.release;
  if (::uname(&system) == 0) {
    const auto first = std::from_chars(system.release, end, major);
    if (first.ptr < end && *first.ptr == '.') std::from_chars(first.ptr + 1, end, minor);
  }
  counts = major > 6 || (major == 6 && minor >= 16) ? 1 : 0;
  known.store(counts, std::memory_order_relaxed);
  return counts != 0;
}

enum class Pages : std::uint8_t { none, some, all, changed, behind_end };

/// Returns which pages of a range of the file the kernel has.
Pages pages_of(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
  struct {
    std::uint64_t offset;
    std::uint64_t length;
  } range{};
  struct {
    std::uint64_t cached, changed, written, evicted, recently_evicted;
  } found{};
  constexpr long kCachestat = 451;
  range.offset = offset / kPageBytes * kPageBytes;
  range.length = (offset + bytes + kPageBytes - 1) / kPageBytes * kPageBytes - range.offset;
  if (!counts_changed_pages() || ::syscall(kCachestat, fd, &range, &found, 0) != 0) return Pages::changed;
  if (found.changed != 0 || found.written != 0) return Pages::changed;
  if (found.cached == 0) return Pages::none;
  return found.cached >= range.length / kPageBytes ? Pages::all : Pages::some;
}

/// The same for a read, which ends at the end of the file. `behind_end`: it begins there, as far as the kernel knows,
/// which asks the mount for the size then.
Pages pages_to_read(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
  const Pages pages = pages_of(fd, offset, bytes);
  struct statx found{};
  if ((pages != Pages::none && pages != Pages::some) || !look(fd, found) || offset + bytes <= found.stx_size)
    return pages;
  return offset >= found.stx_size ? Pages::behind_end : pages_of(fd, offset, found.stx_size - offset);
}

/// The same for a read that may go past the mount by this use. On the path `host` it does so behind the end, too.
Pages pages_to_compare(const DirectUse& use, int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
  if (!use) return Pages::changed;
  return use.path() == files::Path::host ? pages_of(fd, offset, bytes) : pages_to_read(fd, offset, bytes);
}

bool is_usual(std::size_t bytes, off_t offset) noexcept {
  return bytes != 0 && bytes <= kMostBytes && offset >= 0 && offset <= INT64_MAX - static_cast<off_t>(kMostBytes);
}

/// Whether RLIMIT_FSIZE allows this write.
bool is_within_limit(std::size_t bytes, off_t offset) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
  return limit.rlim_cur == RLIM_INFINITY || static_cast<std::uint64_t>(offset) + bytes <= limit.rlim_cur;
}

using Kind = ChosenWay::Kind;
using Way = ChosenWay::Way;

enum class Written : std::uint8_t { not_begun, all, in_part };

bool tell_mount(int fd, const layout::HostWritten& written) noexcept {
  return WHERRY_NEXT(ioctl, fd, layout::kHostTicketWritten, &written) == 0;
}

bool ask_for_size(int fd) noexcept {
  struct stat status{};
  return ::fstat(fd, &status) == 0;
}

/// After a write, tells the mount if it has something to do, and the kernel if the file has grown. A page that is read
/// from now on has the new data. The kernel has no attributes of an open file but its size. It discards the answer with
/// the new size if an older one has arrived meanwhile, which another call asked for before the write. The mount then
/// makes it discard all answers to earlier questions.
bool settle(int fd, const layout::HostWritten& written, const DirectUse& use) noexcept {
  const std::uint64_t end = written.offset + written.length;
  const bool concerns_mount = use.has_set_id() || pages_of(fd, written.offset, written.length) != Pages::none;
  if (concerns_mount && !tell_mount(fd, written)) return false;
  if (knows_size(fd, end)) return true;
  if (!ask_for_size(fd)) return false;
  return knows_size(fd, end) || (tell_mount(fd, written) && ask_for_size(fd));
}

Written write_once(int fd, const void* buffer, std::size_t bytes, off_t offset, ChosenWay& chosen) noexcept {
  const bool explores = chosen.explores();
  const DirectCall here(kMostWaitMs);
  DirectUse use(fd, true, bytes);
  if (!use) return Written::not_begun;
  if (explores)
    chosen.begin(use);
  else
    chosen = ChosenWay(use, Kind::write, static_cast<std::uint64_t>(offset), bytes);
  if (chosen.is(Way::kernel)) {
    // The mount can then keep writes.
    if (chosen.explores())
      use.leave_to_kernel();
    else
      use.prefer_kernel(bytes);
    return Written::not_begun;
  }
  layout::HostWritten written{
      .offset = static_cast<std::uint64_t>(offset), .length = bytes, .failed = 0, .reserved = 0, .boot = {}};
  use.boot(written.boot);
  const std::int64_t put = use.write(written.offset, buffer, bytes);
  if (put == static_cast<std::int64_t>(bytes) && settle(fd, written, use)) {
    if (chosen.is_best()) use.succeeded();
    return Written::all;
  }
  // The caller then makes the whole write by the kernel. A signal handler may write before that, so no part of this
  // write may reach the file later.
  written.failed = 1;
  tell_mount(fd, written);
  use.give_up();
  return Written::in_part;
}

/// A read through the mount.
class ReadByMount {
 public:
  ReadByMount(int fd, KernelsCall kernels, const InPlace* in_place) : fd_(fd), kernels_(kernels), in_place_(in_place) {}
  /// @param hit  the kernel has the pages
  ssize_t operator()(bool hit) {
    is_hit_ = hit;
    if (hit && in_place_ != nullptr) {
      if (const ssize_t got = in_place_->copy(); got >= 0) {
        route_ = Route::in_place;
        return got;
      }
    }
    return kernels_();
  }
  [[nodiscard]] Route route() const { return route_; }
  [[nodiscard]] bool was_in_place() const { return route_ == Route::in_place; }
  /// Whether a repetition would take as long. Hits are made in place once the file is mapped, if it can be.
  [[nodiscard]] bool is_typical() const {
    if (in_place_ != nullptr || !is_hit_) return route_ != Route::in_place || in_place_->is_typical;
    const Entry* const entry = entry_of(fd_);
    return entry == nullptr || entry->file.is_refused() || access_of(fd_) != O_RDONLY;
  }

 private:
  int fd_;
  bool is_hit_ = false;
  KernelsCall kernels_;
  const InPlace* in_place_;
  Route route_ = Route::kernel;
};

std::optional<ssize_t> read_at(int fd, void* buffer, std::size_t bytes, off_t offset, ReadByMount by_mount) {
  if (!is_usual(bytes, offset)) return std::nullopt;
  const auto at = static_cast<std::uint64_t>(offset);
  pthread_testcancel();
  if (!reports() && is_expected_hit(fd, at, bytes)) {
    const ssize_t got = by_mount(true);
    if (!by_mount.was_in_place()) expect_fewer_hits(fd);
    return got;
  }
  const int error = errno;
  const Pages before_connecting = may_hit_wait(fd) ? pages_to_read(fd, at, bytes) : Pages::none;
  if (before_connecting == Pages::behind_end) {
    errno = error;
    return std::nullopt;
  }
  if (before_connecting == Pages::all) {
    const std::uint64_t more = expect_hits(fd);
    count_waiting_hits(reports() ? bytes : bytes * (more + 1));
    const ssize_t got = by_mount(true);
    if (reports()) count_transfer(fd, false, by_mount.route(), got, Hit::yes);
    return got;
  }
  ChosenWay chosen;
  std::int64_t got = -1;
  Hit hit = Hit::not_checked;
  {
    const DirectCall here(kMostWaitMs);
    DirectUse use(fd, false, bytes);
    const Pages pages = pages_to_compare(use, fd, at, bytes);
    const bool is_compared = pages != Pages::changed && pages != Pages::behind_end;
    if (is_compared) chosen = ChosenWay(use, pages == Pages::all ? Kind::hit : Kind::miss, at, bytes);
    if (chosen.is(Way::host)) got = use.read(at, buffer, bytes);
    if (chosen.is(Way::host) && got >= 0) use.succeeded();
    if (chosen.is(Way::host) && got < 0) use.give_up();
    hit = pages == Pages::all ? Hit::yes : Hit::no;
  }
  errno = error;
  if (chosen.is(Way::kernel)) got = by_mount(hit == Hit::yes);
  if (got < 0 && !chosen.is(Way::kernel)) return std::nullopt;
  chosen.note(got, by_mount.is_typical());
  if (reports()) count_transfer(fd, false, chosen.is(Way::host) ? Route::host : by_mount.route(), got, hit);
  return got;
}

std::optional<ssize_t> write_at(int fd, const void* buffer, std::size_t bytes, off_t offset, KernelsCall by_mount) {
  if (!is_usual(bytes, offset) || !is_within_limit(bytes, offset)) return std::nullopt;
  pthread_testcancel();
  const int error = errno;
  ChosenWay chosen;
  if (!is_open_at_host(fd) && path_of_transfers(fd) == files::Path::automatic)
    chosen = ChosenWay::before_opening(fd, bytes);
  const Written done = chosen.is(Way::kernel) ? Written::not_begun : write_once(fd, buffer, bytes, offset, chosen);
  errno = error;
  if (done != Written::all && !chosen.is(Way::kernel)) return std::nullopt;
  const ssize_t put = done == Written::all ? static_cast<ssize_t>(bytes) : by_mount();
  chosen.note(put);
  if (reports() && done == Written::all) count_transfer(fd, true, Route::host, put);
  return put;
}

/// The offset of a descriptor of mode `own`, while no other call of this process uses it. Signals are blocked
/// meanwhile: a handler that uses the descriptor would wait for the code that it interrupts.
class OwnOffset {
 public:
  OwnOffset(int fd, Entry& entry, State before) noexcept
      : call_(kMostWaitMs, true),
        fd_(fd),
        entry_(entry),
        after_(before),
        moving_(before.with(Mode::moving, before.number())) {
    is_held_ = before.inside() == 0 && entry.exchange(before, moving_);
    if (!is_held_) return;
    offset_ = WHERRY_NEXT(lseek, fd, 0, SEEK_CUR);
    if (offset_ < 0) never_direct(fd);  // a pipe, for example
  }
  OwnOffset(const OwnOffset&) = delete;
  OwnOffset& operator=(const OwnOffset&) = delete;
  ~OwnOffset() {
    if (is_held_) entry_.exchange(moving_, after_);
  }

  /// Negative: it cannot be used.
  [[nodiscard]] off_t offset() const { return offset_; }
  /// @param cost  is added to what the descriptor's reads have cost
  void advance(ssize_t bytes, std::uint64_t cost) noexcept {
    after_.word += cost;
    if (bytes > 0 && entry_.load().word == moving_.word) WHERRY_NEXT(lseek, fd_, offset_ + bytes, SEEK_SET);
  }

 private:
  DirectCall call_;
  int fd_;
  Entry& entry_;
  State after_;
  State moving_;
  bool is_held_ = false;
  off_t offset_ = -1;
};

/// Makes a transfer at the descriptor's offset: `transfer(offset, kernels)`. `cost` is that of a transfer past the
/// mount.
template <typename Transfer>
std::optional<ssize_t> at_offset(int fd, Entry& entry, State before, std::uint64_t cost, KernelsCall kernels,
                                 Transfer transfer) {
  pthread_testcancel();
  const int error = errno;
  // Before others wait for the offset: the loader waits for constructors, and one of these may fork.
  if (!is_direct_loaded() && may_become_direct(fd)) load_direct();
  std::optional<OwnOffset> own;
  own.emplace(fd, entry, before);
  if (own->offset() < 0) {
    errno = error;
    return std::nullopt;
  }
  // The kernel's call moves its offset itself, and a signal may end it.
  auto call = [&] {
    own.reset();
    return kernels();
  };
  const auto moved = transfer(own->offset(), KernelsCall(call));
  if (own && moved) own->advance(*moved, cost);
  return moved;
}

}  // namespace

bool may_be_direct(int fd, std::size_t bytes) noexcept {
  return bytes >= least_direct() && !in_vfork_child() && entry_of(fd) != nullptr && is_ready(fd);
}

bool may_read_direct(int fd, std::size_t bytes) noexcept {
  return may_be_direct(fd, bytes) && !reads_little(fd, bytes);
}

bool may_become_direct(int fd) noexcept { return least_direct() != SIZE_MAX && !in_vfork_child() && is_on_mount(fd); }

std::optional<ssize_t> pread_direct(int fd, void* buffer, std::size_t bytes, off_t offset, const InPlace* in_place) {
  auto kernels = [&] { return WHERRY_NEXT(pread, fd, buffer, bytes, offset); };
  return read_at(fd, buffer, bytes, offset, {fd, KernelsCall(kernels), in_place});
}

ssize_t pread_not_in_place(int fd, void* buffer, std::size_t bytes, off_t offset) {
  if (may_read_direct(fd, bytes)) {
    if (const auto moved = pread_direct(fd, buffer, bytes, offset)) return *moved;
  }
  const ssize_t result = WHERRY_NEXT(pread, fd, buffer, bytes, offset);
  if (reports()) [[unlikely]]
    count_transfer(fd, false, Route::kernel, result);
  return result;
}

std::optional<ssize_t> pwrite_direct(int fd, const void* buffer, std::size_t bytes, off_t offset,
                                     KernelsCall by_mount) {
  return write_at(fd, buffer, bytes, offset, by_mount);
}

std::optional<ssize_t> read_direct(int fd, Entry& entry, State before, std::uint64_t cost, void* buffer,
                                   std::size_t bytes, KernelsCall kernels) {
  return at_offset(fd, entry, before, cost, kernels, [&](off_t offset, KernelsCall call) {
    return read_at(fd, buffer, bytes, offset, {fd, call, nullptr});
  });
}

std::optional<ssize_t> write_direct(int fd, Entry& entry, State before, const void* buffer, std::size_t bytes,
                                    KernelsCall kernels) {
  return at_offset(fd, entry, before, 0, kernels,
                   [&](off_t offset, KernelsCall call) { return write_at(fd, buffer, bytes, offset, call); });
}

}  // namespace wherry::preload
