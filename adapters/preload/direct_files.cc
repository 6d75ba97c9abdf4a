// SPDX-License-Identifier: Apache-2.0
#include "direct_files.hpp"

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <optional>

#include "descriptors.hpp"
#include "direct_costs.hpp"
#include "direct_descriptors.hpp"
#include "direct_words.hpp"
#include "directories.hpp"
#include "file/mapped/fault_signals.hpp"
#include "file/mapped/signals_blocked.hpp"
#include "file/mapped/touched_parts.hpp"
#include "layout/write_ring.hpp"
#include "next.hpp"
#include "own_numbers.hpp"
#include "report.hpp"
#include "vfork.hpp"
#include "write_rings.hpp"

namespace wherry::preload {
namespace {

/// Pause after a file could not be opened, before another is tried: the server may be out of this process's reach.
/// Doubled each time.
constexpr std::uint32_t kOutOfReachMs = 1000;
/// Bytes of reads on `auto` before a process connects. A connection costs about 3 ms (loading the library, new memory
/// of the rings). Long reads save more.
constexpr std::size_t kLongRead = std::size_t{256} << 10;
constexpr std::uint64_t kWorthConnectingLong = std::uint64_t{4} << 20;
constexpr std::uint64_t kWorthConnecting = std::uint64_t{16} << 20;
/// Bytes of reads whose pages were there before a process connects for such reads. They take 0.2 s or more, and
/// 1 s on busy cores, where the connection takes 10 ms: 1 % at most.
constexpr std::uint64_t kHitsWorthConnecting = std::uint64_t{16} << 30;
/// Number of writes that tell how long writes past the mount take.
constexpr std::uint32_t kLeastWrites = 8;
/// First pause before the kernel's writes are measured: the mount begins to keep them after a few.
constexpr std::uint32_t kFirstKernelMs = 20;
/// Number of reads that are expected to be hits after one that was: more where a read in place shows a missing page. To
/// look at the pages takes longer than to copy 64 KiB in place.
constexpr std::uint8_t kExpectedHits = 16;
constexpr std::uint8_t kExpectedInPlace = 127;

struct alignas(64) Slot {
  std::atomic<std::uint32_t> users{0};
  std::atomic<bool> taken{false};
  void* file = nullptr;
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;
  int access = 0;
  files::Path path = files::Path::kernel;
  std::atomic<std::uint64_t> next{0};      ///< offset behind the last transfer
  std::atomic<std::uint32_t> failures{0};  ///< since the last transfer that succeeded
  std::atomic<std::uint32_t> writes{0};    ///< since the file was opened
  std::uint64_t serial = 0;                ///< of all files that were opened
  file::Reuse reuse;
};

// Pages of zeros take no memory until they are written to.
constinit std::array<std::atomic<std::uint64_t>, kDescriptors> words{};
constinit std::array<Slot, 256> slots{};
// Larger than those of mappings, with which these files share the table of touched parts.
constinit std::atomic<std::uint64_t> last_serial{std::uint64_t{1} << 63};
// 0: within reach. Otherwise no file is opened until this time, in ms of the coarse clock with bit 32 set.
constinit std::atomic<std::uint64_t> out_of_reach{0};
constinit std::atomic<std::uint32_t> out_of_reach_ms{kOutOfReachMs};  // the next pause
constinit std::atomic<bool> is_connected{false};
constinit std::atomic<std::uint64_t> read_before{0};  // bytes of reads on `auto` before there is a connection
constinit std::atomic<std::uint64_t> hit_before{0};   // of reads that were hits; about
constinit std::atomic<bool> ended{false};

/// Calls the library's `transfer`, whose copies may fault.
template <class Transfer>
std::int64_t guarded(Transfer transfer) noexcept {
  std::optional<file::mapped::FaultsUnblocked> unblocked;
  // Otherwise a handler of the program's could run.
  if (file::mapped::catch_faults(reinterpret_cast<file::mapped::Sigaction>(next_function(Hook::k_sigaction))))
    unblocked.emplace();
  return transfer(*direct_library());
}

int free_slot() noexcept {
  for (std::size_t i = 0; i < slots.size(); i++) {
    if (!slots[i].taken.exchange(true, std::memory_order_acquire)) return static_cast<int>(i);  // SLOT acquire
  }
  return -1;
}

/// Frees a slot whose file was not opened or is closed.
void give_back(Slot& slot) noexcept {
  slot.file = nullptr;
  slot.taken.store(false, std::memory_order_release);  // SLOT release: it is not used any more
}

/// The caller has a DirectCall.
void leave(Slot& slot) noexcept {
  if (slot.users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;  // USERS release, acquire: what others have done
  DirectCall::allow(kMostCloseMs);
  direct_library()->close(slot.file);
  give_back(slot);
}

bool ask_mount(int fd, layout::HostTicket& ticket) noexcept {
  return WHERRY_NEXT(ioctl, fd, layout::kHostTicketGet, &ticket) == 0;
}

bool is_for_now(int error) { return error == EBUSY || error == ENFILE || error == EMFILE || error == EINTR; }

/// Opens no file for a time.
void stay_away() noexcept {
  const std::uint32_t pause = out_of_reach_ms.load(std::memory_order_relaxed);
  out_of_reach_ms.store(std::min(2 * pause, kMostPauseMs), std::memory_order_relaxed);
  out_of_reach.store(std::uint64_t{1} << 32 | (now_ms() + pause), std::memory_order_relaxed);
}

/// Whether a process without a connection should make one for a read. Counts the read.
bool is_worth_connecting(std::uint64_t file_bytes, std::size_t bytes) noexcept {
  const std::uint64_t least = bytes < kLongRead ? kWorthConnecting : kWorthConnectingLong;
  if (is_connected.load(std::memory_order_relaxed) || file_bytes >= least) return true;
  return read_before.fetch_add(bytes, std::memory_order_relaxed) + bytes > least;
}

/// Opens the file of a descriptor. Returns the new word of the descriptor.
std::uint64_t open_file(int fd, bool writes, std::uint32_t failures) noexcept {
  const std::uint64_t later = pause_after(failures + 1);
  struct statx found{};
  if (!look(fd, found)) return kNew;
  const auto path = path_on_mount(fd, found);
  const int access = access_of(fd);
  if (!path || access < 0) return kNever;
  if (writes && access != O_WRONLY) return later;
  const Direct* const library = load_direct_library();
  if (library == nullptr) return Word::of(kNever);
  // Asked for last: a ticket that is not used stays at the server for a time.
  layout::HostTicket ticket{};
  ticket.access = layout::kHostTicketNone;
  if (!ask_mount(fd, ticket)) return is_for_now(errno) ? later : Word::of(kNever);
  const int number = free_slot();
  if (number < 0) return later;
  Slot& slot = slots[static_cast<unsigned>(number)];
  const StandardNumbersTaken standard;
  const OpenNumbers before = OpenNumbers::now();
  const bool reached = before && library->connect(ticket);
  if (reached) is_connected.store(true, std::memory_order_relaxed);
  ticket.access = writes ? layout::kHostTicketWrites : layout::kHostTicketReads;
  const bool given = reached && ask_mount(fd, ticket);
  const int error = errno;
  if (given) slot.file = library->open(ticket);
  if (!before || !before.note_new_ones()) {
    if (slot.file != nullptr) library->close(slot.file);
    give_back(slot);
    never_load_direct();
    return Word::of(kNever);
  }
  if (slot.file == nullptr) {
    give_back(slot);
    if (!reached || given) stay_away();
    return !reached || given || is_for_now(error) ? later : Word::of(kNever);
  }
  out_of_reach_ms.store(kOutOfReachMs, std::memory_order_relaxed);
  slot.device_major = found.stx_dev_major;
  slot.device_minor = found.stx_dev_minor;
  slot.inode = found.stx_ino;
  slot.access = access;
  slot.path = *path;
  slot.next.store(0, std::memory_order_relaxed);
  slot.failures.store(failures, std::memory_order_relaxed);
  slot.serial = last_serial.fetch_add(1, std::memory_order_relaxed) + 1;
  slot.writes.store(0, std::memory_order_relaxed);
  slot.reuse.reset();
  slot.users.store(1, std::memory_order_release);  // USERS release: the fields
  return Word::of(kFirstSlot + static_cast<std::uint32_t>(number));
}

/// One thread at a time. Other threads make the kernel's call.
void try_opening(int fd, bool writes, std::uint64_t before) noexcept {
  const DirectOpening turn;
  if (!turn) return;
  const std::uint64_t after = open_file(fd, writes, Word{before}.failures());
  // The descriptor may have been closed meanwhile.
  // WORD release: the slot
  if (!words[static_cast<unsigned>(fd)].compare_exchange_strong(before, after, std::memory_order_release)) {
    if (const int slot = Word{after}.slot(); slot >= 0) leave(slots[static_cast<unsigned>(slot)]);
  }
}

/// Returns the slot of a descriptor and counts this thread as its user, or -1 if it has none.
int enter(int fd) noexcept {
  auto& place = words[static_cast<unsigned>(fd)];
  const Word word{place.load(std::memory_order_acquire)};  // WORD acquire: the slot
  if (word.slot() < 0) return -1;
  Slot& slot = slots[static_cast<unsigned>(word.slot())];
  std::uint32_t users = slot.users.load(std::memory_order_relaxed);
  do {
    if (users == 0) return -1;
  } while (
      !slot.users.compare_exchange_weak(users, users + 1, std::memory_order_acq_rel));  // USERS acquire: the fields
  if (place.load(std::memory_order_acquire) == word.word) return word.slot();  // WORD acquire: it is the same slot
  leave(slot);
  return -1;
}

/// The caller has a DirectCall.
void forget(int fd, std::uint64_t after) noexcept {
  // WORD acquire: the slot
  const Word before{words[static_cast<unsigned>(fd)].exchange(after, std::memory_order_acquire)};
  if (before.slot() >= 0) leave(slots[static_cast<unsigned>(before.slot())]);
}

}  // namespace

DirectUse::DirectUse(int fd, bool writes, std::size_t bytes) noexcept : fd_(fd) {
  if (is_direct_ending()) return;
  const Word word{words[static_cast<unsigned>(fd)].load(std::memory_order_relaxed)};
  if (word.is_new() || (word.waits() && is_over(word.time()))) {
    DirectCall::allow(kMostOpenMs);
    try_opening(fd, writes, word.word);
    DirectCall::allow(kMostWaitMs);
  }
  const int slot = enter(fd);
  if (slot < 0) return;
  slot_ = slot;
  const bool fits = writes == (slots[static_cast<unsigned>(slot)].access == O_WRONLY);
  if (fits && bytes >= (path() == files::Path::host ? 1 : kLeastOfAutomatic) && is_same_file()) return;
  slot_ = -1;
  leave(slots[static_cast<unsigned>(slot)]);
}

DirectUse::~DirectUse() {
  if (slot_ >= 0) leave(slots[static_cast<unsigned>(slot_)]);
}

/// Whether the descriptor still has the slot's file. A call that passed no hook may have given the number to another.
bool DirectUse::is_same_file() noexcept {
  const Slot& slot = slots[static_cast<unsigned>(slot_)];
  struct statx found{};
  if (!look(fd_, found)) return false;
  return found.stx_dev_major == slot.device_major && found.stx_dev_minor == slot.device_minor &&
         found.stx_ino == slot.inode && access_of(fd_) == slot.access;
}

files::Path DirectUse::path() const noexcept { return slots[static_cast<unsigned>(slot_)].path; }

std::int64_t DirectUse::read(std::uint64_t offset, void* into, std::size_t bytes) const noexcept {
  void* const file = slots[static_cast<unsigned>(slot_)].file;
  return guarded([&](const Direct& library) { return library.read(file, offset, into, bytes); });
}

std::int64_t DirectUse::write(std::uint64_t offset, const void* from, std::size_t bytes) const noexcept {
  void* const file = slots[static_cast<unsigned>(slot_)].file;
  return guarded([&](const Direct& library) { return library.write(file, offset, from, bytes); });
}

bool DirectUse::has_set_id() const noexcept {
  return direct_library()->has_set_id(slots[static_cast<unsigned>(slot_)].file);
}

bool DirectUse::is_warm(bool writes) const noexcept {
  return direct_library()->is_warm(slots[static_cast<unsigned>(slot_)].file, writes);
}

bool DirectUse::is_shared() const noexcept {
  return direct_library()->is_shared(slots[static_cast<unsigned>(slot_)].file);
}

void DirectUse::boot(std::uint8_t (&id)[16]) const noexcept {
  direct_library()->boot(slots[static_cast<unsigned>(slot_)].file, id);
}

bool DirectUse::is_sequential(std::uint64_t offset, std::size_t bytes) const noexcept {
  return slots[static_cast<unsigned>(slot_)].next.exchange(offset + bytes, std::memory_order_relaxed) == offset;
}

bool DirectUse::is_measured() const noexcept {
  return slots[static_cast<unsigned>(slot_)].writes.fetch_add(1, std::memory_order_relaxed) >= kLeastWrites;
}

bool DirectUse::is_worth_filling(const file::Reuse::Costs& costs, std::uint64_t offset,
                                 std::size_t bytes) const noexcept {
  Slot& slot = slots[static_cast<unsigned>(slot_)];
  return slot.reuse.is_worth_filling(costs, file::mapped::was_touched(slot.serial, offset, bytes));
}

layout::TransferClass* DirectUse::transfer_classes() const noexcept { return direct_library()->transfer_classes(); }

void DirectUse::succeeded() const noexcept {
  slots[static_cast<unsigned>(slot_)].failures.store(0, std::memory_order_relaxed);
}

std::uint32_t DirectUse::failures() const noexcept {
  return slots[static_cast<unsigned>(slot_)].failures.load(std::memory_order_relaxed);
}

void DirectUse::close_with(std::uint64_t after) noexcept {
  std::uint64_t word = Word::of(kFirstSlot + static_cast<std::uint32_t>(slot_));
  if (words[static_cast<unsigned>(fd_)].compare_exchange_strong(word, after))
    leave(slots[static_cast<unsigned>(slot_)]);
}

void DirectUse::give_up() noexcept { close_with(pause_after(failures() + 1)); }

void DirectUse::prefer_kernel(std::size_t bytes) noexcept {
  const bool is_short = failures() == 0 && bytes > layout::kMostWrittenByRing;
  close_with(is_short ? Word::of(kMount + 1, now_ms() + kFirstKernelMs) : pause_after(failures() + 1));
}

void DirectUse::leave_to_kernel() noexcept {
  close_with(Word::of(kMount + std::min(failures(), kMostFailures), now_ms()));
}

void stay_with_ring(int fd) noexcept {
  std::uint64_t word = words[static_cast<unsigned>(fd)].load(std::memory_order_relaxed);
  if (Word{word}.slot() < 0 && Word{word}.kind() != kNever)
    words[static_cast<unsigned>(fd)].compare_exchange_strong(word, Word::of(kRing));
}

bool is_open_at_host(int fd) noexcept {
  return Word{words[static_cast<unsigned>(fd)].load(std::memory_order_relaxed)}.slot() >= 0;
}

bool reads_little(int fd, std::size_t bytes) noexcept {
  if (is_connected.load(std::memory_order_relaxed)) return false;
  std::atomic<std::uint64_t>& place = words[static_cast<unsigned>(fd)];
  std::uint64_t word = place.load(std::memory_order_relaxed);
  if (Word{word}.kind() == kSmall) return !is_worth_connecting(0, bytes);
  if (Word{word}.kind() != kNew) return false;
  const int error = errno;
  struct statx found{};
  const bool is_compared = look(fd, found) && path_on_mount(fd, found) == files::Path::automatic;
  errno = error;
  const bool is_little = is_compared && !is_worth_connecting(found.stx_size, bytes);
  place.compare_exchange_strong(word, Word::of(is_little ? kSmall : kLarge), std::memory_order_relaxed);
  return is_little;
}

bool may_hit_wait(int fd) noexcept {
  Entry* const entry = entry_of(fd);
  if (is_connected.load(std::memory_order_relaxed) || entry == nullptr) return false;
  Hits hits = entry->hits.load(std::memory_order_relaxed);
  if (hits == Hits::unknown) {
    struct statx found{};
    const bool is_compared = look(fd, found) && path_on_mount(fd, found) == files::Path::automatic;
    hits = is_compared ? Hits::wait : Hits::connect;
    entry->hits.store(hits, std::memory_order_relaxed);
  }
  return hits == Hits::wait && hit_before.load(std::memory_order_relaxed) < kHitsWorthConnecting;
}

void count_waiting_hits(std::uint64_t bytes) noexcept { hit_before.fetch_add(bytes, std::memory_order_relaxed); }

bool is_ready(int fd) noexcept {
  const Word word{words[static_cast<unsigned>(fd)].load(std::memory_order_relaxed)};
  if (word.slot() >= 0) return true;
  if (word.kind() == kRing && has_ring(fd)) return false;
  const std::uint64_t until = out_of_reach.load(std::memory_order_relaxed);
  if (until != 0 && !is_over(static_cast<std::uint32_t>(until))) return false;
  return word.is_new() || (word.waits() && is_over(word.time()));
}

/// Does not enter the slot: whichever file has it, its order of reads is only a hint.
bool is_expected_hit(int fd, std::uint64_t offset, std::size_t bytes) noexcept {
  Entry* const entry = entry_of(fd);
  const std::uint8_t hits = entry == nullptr ? 0 : entry->expected_hits.load(std::memory_order_relaxed);
  if (hits == 0) return false;
  entry->expected_hits.store(hits - 1, std::memory_order_relaxed);
  const Word word{words[static_cast<unsigned>(fd)].load(std::memory_order_relaxed)};
  if (word.slot() >= 0) slots[static_cast<unsigned>(word.slot())].next.store(offset + bytes, std::memory_order_relaxed);
  return true;
}

std::uint64_t expect_hits(int fd) noexcept {
  Entry* const entry = entry_of(fd);
  if (entry == nullptr) return 0;
  const std::uint8_t hits = entry->file.is_mapped() ? kExpectedInPlace : kExpectedHits;
  entry->expected_hits.store(hits, std::memory_order_relaxed);
  return hits;
}

void expect_fewer_hits(int fd) noexcept {
  Entry* const entry = entry_of(fd);
  if (entry != nullptr && entry->expected_hits.load(std::memory_order_relaxed) > kExpectedHits)
    entry->expected_hits.store(kExpectedHits, std::memory_order_relaxed);
}

namespace {

void forget_hits(int fd) noexcept {
  Entry* const entry = entry_of(fd);
  if (entry == nullptr) return;
  entry->expected_hits.store(0, std::memory_order_relaxed);
  entry->hits.store(Hits::unknown, std::memory_order_relaxed);
}

}  // namespace

void forget_direct(int fd) noexcept {
  forget_hits(fd);
  auto& place = words[static_cast<unsigned>(fd)];
  std::uint64_t word = place.load(std::memory_order_relaxed);
  if (word == kNew || (Word{word}.slot() < 0 && place.compare_exchange_strong(word, kNew, std::memory_order_relaxed)))
    return;
  const int error = errno;
  const DirectCall here(kMostCloseMs);
  forget(fd, kNew);
  errno = error;
}

void never_direct(int fd) noexcept {
  forget_hits(fd);
  if (least_direct() == SIZE_MAX) return;
  const int error = errno;
  const DirectCall here(kMostCloseMs);
  forget(fd, kNever);
  errno = error;
}

void closes_number(int fd) noexcept {
  if (direct_library() == nullptr || in_vfork_child() || !take_own_number(fd)) return;
  // If the library closes the number itself, nothing is to be done.
  if (!is_in_direct()) end_direct();
}

void end_direct() noexcept {
  const int error = errno;
  const file::mapped::SignalsBlocked blocked;  // a handler would wait for the thread that it interrupts
  if (!begin_end_of_direct()) {
    wait_while([] { return !ended.load(std::memory_order_acquire); });  // ENDED acquire: the descriptors are closed
    return;
  }
  await_direct_calls();
  for (int each = 0; each < kDescriptors; each++) forget_direct(each);
  // Threads that were closing descriptors have then closed their files.
  await_direct_calls();
  if (const Direct* const library = direct_library()) {
    const DirectCall here(kMostCloseMs);
    library->end();
  }
  ended.store(true, std::memory_order_release);  // ENDED release: the descriptors are closed
  errno = error;
}

void forget_direct_after_fork() noexcept {
  // Loads first: stores would cost the child its own pages.
  forget_direct_library_after_fork();
  // The thread that was ending it is the parent's.
  if (is_direct_ending()) ended.store(true, std::memory_order_relaxed);
  if (direct_library() == nullptr) return;
  forget_costs_after_fork();
  is_connected.store(false, std::memory_order_relaxed);
  read_before.store(0, std::memory_order_relaxed);
  hit_before.store(0, std::memory_order_relaxed);
  for (int fd = 0; fd < kDescriptors; fd++) {
    auto& word = words[static_cast<unsigned>(fd)];
    if (word.load(std::memory_order_relaxed) != kNew) word.store(kNew, std::memory_order_relaxed);
  }
  for (Slot& slot : slots) {
    if (slot.taken.load(std::memory_order_relaxed)) give_back(slot);
  }
  forget_own_numbers();
}

}  // namespace wherry::preload
