// SPDX-License-Identifier: Apache-2.0
#include "write_rings.hpp"

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>

#include "direct_descriptors.hpp"
#include "direct_files.hpp"
#include "direct_transfers.hpp"
#include "direct_words.hpp"
#include "directories.hpp"
#include "file/mapped/copies_under_way.hpp"
#include "file/mapped/fault_signals.hpp"
#include "file/mapped/guarded_copy.hpp"
#include "layout/write_ring.hpp"
#include "next.hpp"
#include "own_numbers.hpp"
#include "sharing.hpp"

namespace wherry::preload {
namespace {

using layout::kWriteRingBytes;
using layout::kWriteRingMemory;
using layout::kWriteRingSealed;
using layout::WriteRingHeader;
using layout::WriteRingOffer;
using layout::WriteRingRecord;

/// Writes before the first attempt. The mount holds writes back from the fourth one on.
constexpr std::uint64_t kFirstAttempt = 8;
constexpr std::uint64_t kLastAttempt = std::uint64_t{1} << 10;
/// Data of one record.
constexpr std::size_t kMostInRecord = std::size_t{64} << 10;
/// How long a limit of file sizes that another process sets may go unnoticed.
constexpr std::uint32_t kLimitKeptMs = 10;

struct alignas(64) RingSlot {
  std::atomic<std::uint32_t> users{0};
  std::atomic<bool> taken{false};
  std::atomic<bool> busy{false};
  std::atomic<int> fd{-1};
  std::atomic<bool> appends{false};  ///< the file is opened with O_APPEND
  std::atomic<WriteRingHeader*> ring{nullptr};
};

// Pages of zeros take no memory until they are written to.
constinit std::array<std::atomic<std::uint16_t>, kDescriptors> slot_of{};  // slot + 1; 0: none
constinit std::array<RingSlot, 64> ring_slots{};
constinit std::atomic<int> slots_taken{0};

constinit std::atomic<std::uint64_t> size_limit{0};
constinit std::atomic<std::uint32_t> size_limit_until{0};  // in ms of the coarse clock, not 0
constinit std::atomic<bool> asks_for_limit{false};

bool is_within_limit(std::uint64_t end) noexcept {
  const std::uint32_t until = size_limit_until.load(std::memory_order_relaxed);
  if (until == 0 || is_over(until) || asks_for_limit.load(std::memory_order_relaxed)) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    size_limit.store(limit.rlim_cur, std::memory_order_relaxed);
    size_limit_until.store((now_ms() + kLimitKeptMs) | 1, std::memory_order_relaxed);
  }
  const std::uint64_t limit = size_limit.load(std::memory_order_relaxed);
  return limit == RLIM_INFINITY || end <= limit;
}

void leave_ring(RingSlot& slot) noexcept {
  if (slot.users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;  // RING-USERS release, acquire: what others did
  ::syscall(SYS_munmap, slot.ring.exchange(nullptr, std::memory_order_relaxed), kWriteRingMemory);
  slot.busy.store(false, std::memory_order_relaxed);
  slot.fd.store(-1, std::memory_order_relaxed);
  slots_taken.fetch_sub(1, std::memory_order_relaxed);
  slot.taken.store(false, std::memory_order_release);  // RING-SLOT release: it is not used any more
}

/// Returns the slot of a descriptor and counts this thread as its user, or null.
RingSlot* enter_ring(int fd) noexcept {
  if (static_cast<unsigned>(fd) >= slot_of.size()) return nullptr;
  const auto& place = slot_of[static_cast<unsigned>(fd)];
  const std::uint16_t number = place.load(std::memory_order_acquire);  // RING-PLACE acquire: the slot
  if (number == 0) return nullptr;
  RingSlot& slot = ring_slots[number - 1U];
  std::uint32_t users = slot.users.load(std::memory_order_relaxed);
  do {
    if (users == 0) return nullptr;
  } while (!slot.users.compare_exchange_weak(users, users + 1, std::memory_order_acq_rel));  // RING-USERS acquire
  if (place.load(std::memory_order_acquire) == number) return &slot;  // RING-PLACE acquire
  leave_ring(slot);
  return nullptr;
}

/// The writer of a ring, while no other call is in progress.
class RingWriter {
 public:
  explicit RingWriter(int fd) noexcept : slot_(enter_ring(fd)), fd_(fd) {
    if (slot_ == nullptr || !slot_->busy.exchange(true, std::memory_order_acquire)) return;  // RING-BUSY acquire
    leave_ring(*slot_);
    slot_ = nullptr;
  }
  RingWriter(const RingWriter&) = delete;
  RingWriter& operator=(const RingWriter&) = delete;
  ~RingWriter() {
    if (slot_ == nullptr) return;
    slot_->busy.store(false, std::memory_order_release);  // RING-BUSY release: the ring
    leave_ring(*slot_);
  }
  explicit operator bool() const { return slot_ != nullptr; }

  /// The descriptor's offset.
  [[nodiscard]] std::uint64_t offset() const { return record_at(last() & ~kWriteRingSealed).next; }
  [[nodiscard]] bool appends() const { return slot_->appends.load(std::memory_order_relaxed); }
  /// Adds a record. False: nothing is changed.
  /// @param parts  of the data, of `bytes` bytes together
  /// @param at  where the data is written, if the file is not appended to; null: at the offset, which moves
  bool put(std::span<const iovec> parts, std::uint32_t bytes, const std::uint64_t* at) noexcept;
  /// Moves the offset.
  bool seek(std::uint64_t offset) noexcept {
    return add({.offset = 0, .next = offset, .length = 0, .reserved = {}, .end = end()});
  }

 private:
  [[nodiscard]] WriteRingHeader& header() const { return *slot_->ring.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t last() const {
    return header().last.load(std::memory_order_acquire);  // RING-LAST acquire: the mount's seal
  }
  [[nodiscard]] std::byte* byte_at(std::uint64_t position) const {
    return reinterpret_cast<std::byte*>(&header() + 1) + position % kWriteRingBytes;
  }
  [[nodiscard]] WriteRingRecord& record_at(std::uint64_t position) const {
    return *reinterpret_cast<WriteRingRecord*>(byte_at(position));
  }
  [[nodiscard]] std::uint64_t tail(std::uint64_t last) const {
    return last + layout::write_ring_bytes(record_at(last).length);
  }
  [[nodiscard]] bool has_room(std::uint64_t last, std::uint64_t bytes) const {
    // RING-TAKEN acquire: the mount does not read this memory any more. The last record has the offset, so it stays.
    const std::uint64_t first = std::min(header().taken.load(std::memory_order_acquire), last);
    const std::uint64_t end = tail(last) + bytes;
    return end - first <= kWriteRingBytes && end <= header().limit.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool ask_mount() const noexcept {
    return WHERRY_NEXT(ioctl, fd_, layout::kWriteRingTake, nullptr) == 0;
  }
  [[nodiscard]] bool make_room(std::uint64_t last, std::uint64_t bytes) const noexcept {
    return has_room(last, bytes) || (ask_mount() && has_room(last, bytes));
  }
  /// The end of a file that is appended to.
  [[nodiscard]] std::uint64_t end() const { return record_at(last() & ~kWriteRingSealed).end; }
  [[nodiscard]] bool copy(std::uint64_t position, std::span<const iovec> parts) const noexcept;
  bool add(const WriteRingRecord& record, std::span<const iovec> parts = {}) noexcept;

  RingSlot* slot_;
  int fd_;
};

bool RingWriter::copy(std::uint64_t position, std::span<const iovec> parts) const noexcept {
  const file::mapped::CopyUnderWay here;
  if (!here || !file::mapped::takes_faults()) return false;
  for (const iovec& part : parts) {
    const auto* const from = static_cast<const std::byte*>(part.iov_base);
    const std::size_t first = std::min<std::uint64_t>(part.iov_len, kWriteRingBytes - position % kWriteRingBytes);
    const std::size_t rest = part.iov_len - first;
    if (first != 0 && !file::mapped::copy_or_fault(byte_at(position), from, first)) return false;
    if (rest != 0 && !file::mapped::copy_or_fault(byte_at(0), from + first, rest)) return false;
    position += part.iov_len;
  }
  return true;
}

bool RingWriter::add(const WriteRingRecord& record, std::span<const iovec> parts) noexcept {
  std::uint64_t last = this->last();
  if ((last & kWriteRingSealed) != 0 || !make_room(last, layout::write_ring_bytes(record.length))) return false;
  const std::uint64_t position = tail(last);
  if (!parts.empty() && !copy(position + sizeof record, parts)) return false;
  record_at(position) = record;
  // RING-LAST release, RING-SLEEP barrier: the record. Fails if the ring is sealed.
  if (!header().last.compare_exchange_strong(last, position, std::memory_order_seq_cst)) return false;
  // RING-SLEEP barrier: the mount has seen the record, or this thread sees that it sleeps.
  if (header().sleeps.load(std::memory_order_seq_cst) != 0 &&
      header().sleeps.exchange(0, std::memory_order_relaxed) != 0) {
    const int error = errno;
    (void)ask_mount();  // the record is taken by the next request about the file at the latest
    errno = error;
  }
  return true;
}

bool RingWriter::put(std::span<const iovec> parts, std::uint32_t bytes, const std::uint64_t* at) noexcept {
  const std::uint64_t now = offset();
  const std::uint64_t begin = appends() ? end() : at == nullptr ? now : *at;
  const std::uint64_t behind = begin + bytes;
  if (behind >= State::kNumbers || !is_within_limit(behind)) return false;
  return add({.offset = begin,
              .next = at == nullptr ? behind : now,
              .length = bytes,
              .reserved = {},
              .end = appends() ? behind : 0},
             parts);
}

/// Makes the kernel ask for the file's size, which it uses for appends, reads and mappings without asking. It discards
/// the answer if an older one comes meanwhile, or while another thread's write makes the file longer.
void tell_kernel_size(int fd) noexcept {
  constexpr long kLongestPauseNs = 3'200'000;
  constexpr int kRounds = 500;  // 1.6 s
  struct stat status{};
  long pause = 50'000;
  for (int round = 0; round < kRounds; ++round, pause = std::min(2 * pause, kLongestPauseNs)) {
    if (::fstat(fd, &status) != 0 || knows_size(fd, static_cast<std::uint64_t>(status.st_size))) return;
    pause_for(pause);
  }
}

RingSlot* free_ring_slot() noexcept {
  for (RingSlot& slot : ring_slots) {
    if (!slot.taken.exchange(true, std::memory_order_acquire)) return &slot;  // RING-SLOT acquire
  }
  return nullptr;
}

enum class Offered : std::uint8_t { attached, later, never };

/// Whether the kernel would write through its cache.
bool is_plain(int flags) noexcept {
  const int access = flags & O_ACCMODE;
  return flags >= 0 && (access == O_WRONLY || access == O_RDWR) &&
         (flags & (O_DIRECT | O_SYNC | O_DSYNC | O_PATH)) == 0;
}

bool may_have_ring(int fd, int flags) noexcept {
  struct statx found{};
  if (!file::mapped::can_guard_copies() || !look(fd, found) || !S_ISREG(found.stx_mode)) return false;
  if (!on_mount_device(found.stx_dev_major, found.stx_dev_minor) || !is_plain(flags)) return false;
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) return false;
  const auto path = path_below(fd);
  return path && in_place(*path) != Path::kernel;
}

/// Makes the memory. Null: not possible now.
WriteRingHeader* make_memory(int memory, WriteRingOffer& offer) noexcept {
  if (::ftruncate(memory, kWriteRingMemory) != 0) return nullptr;
  if (::getrandom(offer.random, sizeof offer.random, 0) != sizeof offer.random) return nullptr;
  const long mapped = ::syscall(SYS_mmap, nullptr, kWriteRingMemory, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (mapped == -1) return nullptr;
  auto* const ring = reinterpret_cast<WriteRingHeader*>(mapped);  // NOLINT(performance-no-int-to-ptr): a mapping
  ring->version = layout::kWriteRingVersion;
  ring->magic = layout::kWriteRingMagic;
  std::memcpy(ring->random, offer.random, sizeof offer.random);
  const int seals = WHERRY_NEXT(fcntl, memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  if (seals == 0 && ::madvise(ring, kWriteRingMemory, MADV_DONTFORK) == 0) return ring;
  ::syscall(SYS_munmap, ring, kWriteRingMemory);
  return nullptr;
}

Offered offer_ring(int fd, bool appends, WriteRingHeader*& ring) noexcept {
  const StandardNumbersTaken standard;
  const auto memory = static_cast<int>(::syscall(SYS_memfd_create, "wherry.ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (memory < 0) return Offered::later;
  WriteRingOffer offer{.version = layout::kWriteRingVersion,
                       .descriptor = memory,
                       .random = {},
                       .appends = appends ? 1U : 0U,
                       .reserved = 0};
  ring = make_memory(memory, offer);
  const bool attached = ring != nullptr && WHERRY_NEXT(ioctl, fd, layout::kWriteRingAttach, &offer) == 0;
  const bool is_later = ring == nullptr || errno == EAGAIN || errno == EINTR || errno == ENOMEM;
  ::syscall(SYS_close, memory);
  if (attached) return Offered::attached;
  if (ring != nullptr) ::syscall(SYS_munmap, ring, kWriteRingMemory);
  return is_later ? Offered::later : Offered::never;
}

/// The caller has the SetupLock.
Offered attach(int fd) noexcept {
  const int flags = WHERRY_NEXT(fcntl, fd, F_GETFL);
  if (!may_have_ring(fd, flags)) return Offered::never;
  const bool appends = (flags & O_APPEND) != 0;
  const auto next = reinterpret_cast<file::mapped::Sigaction>(next_function(Hook::k_sigaction));
  if (!file::mapped::catch_faults(next)) return Offered::later;
  RingSlot* const slot = free_ring_slot();
  if (slot == nullptr) return Offered::later;
  WriteRingHeader* ring = nullptr;
  const Offered offered = offer_ring(fd, appends, ring);
  if (offered != Offered::attached) {
    slot->taken.store(false, std::memory_order_release);  // RING-SLOT release
    return offered;
  }
  slots_taken.fetch_add(1, std::memory_order_relaxed);
  slot->ring.store(ring, std::memory_order_relaxed);
  slot->fd.store(fd, std::memory_order_relaxed);
  slot->appends.store(appends, std::memory_order_relaxed);
  slot->users.store(1, std::memory_order_release);  // RING-USERS release: the fields
  slot_of[static_cast<unsigned>(fd)].store(static_cast<std::uint16_t>(slot - ring_slots.data() + 1),
                                           std::memory_order_release);  // RING-PLACE release: the slot
  return offered;
}

/// Moves the kernel's offset into the ring. The caller has the SetupLock. False: the mode is another one.
bool take_offset(int fd, Entry& entry, State before) noexcept {
  const State moving = before.with(Mode::moving, before.number());
  if (!entry.exchange(before, moving)) return false;
  // From here on other threads wait, and none is in the kernel's call.
  const off_t offset = WHERRY_NEXT(lseek, fd, 0, SEEK_CUR);
  bool fits = offset >= 0 && static_cast<std::uint64_t>(offset) < State::kNumbers;
  if (RingSlot* const slot = fits ? enter_ring(fd) : nullptr; slot != nullptr) {
    // The first record is valid from the start, and has no data.
    WriteRingHeader* const ring = slot->ring.load(std::memory_order_relaxed);
    auto* const first = reinterpret_cast<WriteRingRecord*>(ring + 1);
    first->next = static_cast<std::uint64_t>(offset);
    first->end = slot->appends.load(std::memory_order_relaxed) ? ring->end.load(std::memory_order_relaxed) : 0;
    leave_ring(*slot);
  } else {
    fits = false;
  }
  State there = moving;
  return entry.exchange(there, fits ? before.with(Mode::ring, 0) : before.with(Mode::shared, 0)) && fits;
}

}  // namespace

bool may_have_first_ring(const Entry& entry) noexcept {
  return entry.access.load(std::memory_order_relaxed) == Access::writes &&
         entry.progress.load(std::memory_order_relaxed) <= 2 * kFirstAttempt;
}

bool has_ring(int fd) noexcept {
  return static_cast<unsigned>(fd) < slot_of.size() &&
         slot_of[static_cast<unsigned>(fd)].load(std::memory_order_relaxed) != 0;
}

bool is_time_for_ring(const Entry& entry, State state) noexcept {
  return state.inside() == 0 &&
         state.spent() >= std::max(entry.progress.load(std::memory_order_relaxed), kFirstAttempt);
}

void make_ring(int fd, Entry& entry, State before) noexcept {
  const int error = errno;
  const SetupLock lock(fd);
  Offered offered = Offered::later;
  if (lock && entry.load_in_setup().word == before.word) offered = any_directories() ? attach(fd) : Offered::never;
  if (offered == Offered::attached && !take_offset(fd, entry, before)) forget_ring(fd);
  if (has_ring(fd) && path_of_transfers(fd) == files::Path::automatic) stay_with_ring(fd);
  const std::uint64_t due = std::max(entry.progress.load(std::memory_order_relaxed), kFirstAttempt);
  entry.progress.store(std::min(2 * due, kLastAttempt), std::memory_order_relaxed);
  const bool only_writes = entry.access.load(std::memory_order_relaxed) == Access::writes;
  if (offered == Offered::never)
    entry.exchange(before, before.with(only_writes && may_become_direct(fd) ? before.mode() : Mode::never, 0));
  if (offered == Offered::later) entry.exchange(before, before.with(before.mode(), 0));
  errno = error;
}

std::size_t write_by_ring(int fd, const void* buffer, std::size_t bytes, const off_t* at) noexcept {
  RingWriter writer(fd);
  // An append is one record.
  if (!writer || (writer.appends() && bytes > layout::kMostAppendedByRing)) return 0;
  auto* const from = static_cast<std::byte*>(const_cast<void*>(buffer));
  std::size_t done = 0;
  while (done < bytes) {
    const iovec piece{from + done, std::min(bytes - done, kMostInRecord)};
    const std::uint64_t place = at == nullptr ? 0 : static_cast<std::uint64_t>(*at) + done;
    if (!writer.put({&piece, 1}, static_cast<std::uint32_t>(piece.iov_len), at == nullptr ? nullptr : &place)) break;
    done += piece.iov_len;
  }
  return done;
}

std::size_t write_parts_by_ring(int fd, const iovec* parts, int count) noexcept {
  RingWriter writer(fd);
  if (!writer || count < 1 || count > kMostPartsByRing) return 0;
  std::array<iovec, kMostPartsByRing> copied{};
  const std::span<iovec> all(copied.data(), static_cast<std::size_t>(count));
  {
    const file::mapped::CopyUnderWay here;
    if (!here || !file::mapped::takes_faults() || !file::mapped::copy_or_fault(all.data(), parts, all.size_bytes()))
      return 0;
  }
  const std::size_t most = writer.appends() ? layout::kMostAppendedByRing : kMostInRecord;
  std::size_t bytes = 0;
  for (const iovec& part : all) {
    if (part.iov_len > most - bytes) return 0;
    bytes += part.iov_len;
  }
  return bytes != 0 && writer.put(all, static_cast<std::uint32_t>(bytes), nullptr) ? bytes : 0;
}

bool appends_by_ring(int fd) noexcept {
  RingSlot* const slot = enter_ring(fd);
  if (slot == nullptr) return false;
  const bool appends = slot->appends.load(std::memory_order_relaxed);
  leave_ring(*slot);
  return appends;
}

std::optional<off_t> seek_in_ring(int fd, off_t offset, int whence) noexcept {
  RingWriter writer(fd);
  if (!writer) return std::nullopt;
  const auto now = static_cast<off_t>(writer.offset());
  off_t wanted = offset;
  // The mount takes the records before it answers where the end is.
  if (whence != SEEK_SET && whence != SEEK_CUR) {
    wanted = WHERRY_NEXT(lseek, fd, offset, whence);
    if (wanted < 0) return wanted;
  }
  if ((whence == SEEK_CUR && __builtin_add_overflow(now, offset, &wanted)) || wanted < 0) {
    errno = EINVAL;
    return -1;
  }
  if (wanted == now) return now;
  if (static_cast<std::uint64_t>(wanted) >= State::kNumbers || !writer.seek(static_cast<std::uint64_t>(wanted)))
    return std::nullopt;
  return wanted;
}

std::optional<off_t> end_ring(int fd) noexcept {
  RingSlot* const slot = enter_ring(fd);
  if (slot == nullptr) return std::nullopt;
  WriteRingHeader* const ring = slot->ring.load(std::memory_order_relaxed);
  // RING-LAST acquire, release: no record becomes valid from now on.
  const std::uint64_t last = ring->last.fetch_or(kWriteRingSealed, std::memory_order_acq_rel) & ~kWriteRingSealed;
  const auto* const bytes = reinterpret_cast<const std::byte*>(ring + 1);
  WriteRingRecord record{};
  std::memcpy(&record, bytes + last % kWriteRingBytes, sizeof record);
  const bool appends = slot->appends.load(std::memory_order_relaxed);
  leave_ring(*slot);
  forget_ring(fd);
  const Entry* const entry = entry_of(fd);
  if (appends || (entry != nullptr && entry->access.load(std::memory_order_relaxed) == Access::both))
    tell_kernel_size(fd);
  return static_cast<off_t>(record.next);
}

void forget_ring(int fd) noexcept {
  if (static_cast<unsigned>(fd) >= slot_of.size()) return;
  auto& place = slot_of[static_cast<unsigned>(fd)];
  if (place.load(std::memory_order_relaxed) == 0) return;
  const std::uint16_t number = place.exchange(0, std::memory_order_acquire);  // RING-PLACE acquire: the slot
  if (number == 0) return;
  RingSlot& slot = ring_slots[number - 1U];
  // RING-LAST acquire, release: no record becomes valid from now on.
  slot.ring.load(std::memory_order_relaxed)->last.fetch_or(kWriteRingSealed, std::memory_order_acq_rel);
  leave_ring(slot);
}

void give_up_rings(const void* begin, std::size_t bytes) noexcept {
  if (slots_taken.load(std::memory_order_relaxed) == 0) return;
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  for (RingSlot& slot : ring_slots) {
    const auto ring = reinterpret_cast<std::uintptr_t>(slot.ring.load(std::memory_order_relaxed));
    const int fd = slot.fd.load(std::memory_order_relaxed);
    if (ring != 0 && fd >= 0 && first < ring + kWriteRingMemory && ring - std::min(ring, first) < bytes)
      share_offset(fd);
  }
}

void give_up_all_rings() noexcept {
  if (slots_taken.load(std::memory_order_relaxed) == 0) return;
  for (RingSlot& slot : ring_slots) {
    if (const int fd = slot.fd.load(std::memory_order_relaxed); fd >= 0) share_offset(fd);
  }
}

void forget_rings_after_fork() noexcept {
  if (slots_taken.load(std::memory_order_relaxed) == 0) return;
  // The memory was not inherited.
  for (RingSlot& slot : ring_slots) {
    if (!slot.taken.load(std::memory_order_relaxed)) continue;
    if (const int fd = slot.fd.load(std::memory_order_relaxed); fd >= 0)
      slot_of[static_cast<unsigned>(fd)].store(0, std::memory_order_relaxed);
    slot.ring.store(nullptr, std::memory_order_relaxed);
    slot.users.store(0, std::memory_order_relaxed);
    slot.busy.store(false, std::memory_order_relaxed);
    slot.fd.store(-1, std::memory_order_relaxed);
    slot.taken.store(false, std::memory_order_relaxed);
  }
  slots_taken.store(0, std::memory_order_relaxed);
}

void file_size_limit_changes() noexcept { asks_for_limit.store(true, std::memory_order_relaxed); }

}  // namespace wherry::preload
