// SPDX-License-Identifier: Apache-2.0
//
// State of each descriptor of this process. An entry costs nothing until the kernel has spent some time on reads of its
// descriptor.
//
// An entry is one 64-bit word (State) and the fields that belong to it. The word has a generation, a mode and a number:
//
// clang-format off
//   mode      which offset is valid   the number                      next mode
//   unknown   the kernel's            cost of reads so far            shared, never
//   own       the kernel's            the same, and calls inside      moving, never     (opened here, alone)
//   user      the number              the offset                      moving
//   ring      the ring's              0                               moving            (write_rings.hpp)
//   moving    neither, for one call   that of the mode before         user, ring, own, shared
//   shared    the kernel's            0                               never
//   never     the kernel's            0                               -
// clang-format on
//
// The cost of a descriptor that may have a ring is a number of writes.
//
// From each mode an entry changes to `unknown` or `own` of the next generation when its descriptor is closed or opened.
//
// Rules that prevent the bytes of one file from being taken for another's:
//  1. The generation grows before a descriptor is closed, and after one is opened.
//  2. The holder of a SetupLock stores the fields before the word changes to `user` or `shared`. It changes the word by
//     a compare-exchange from its former value. So the fields belong to that generation.
//  3. Bytes read with the help of the fields count only if the generation is the same afterwards. So the generation
//     grows before a file is unmapped. The mode and the number stay.
//  4. In the modes `own`, `user` and `ring` no descriptor of another number or process shares the offset. The
//     descriptor was opened here, and each call that would share it (dup, fork, exec, sendmsg ...) first sets the
//     kernel's offset and the mode `shared` or `unknown`.
//  5. The holder of a SetupLock maps a file only if the generation is still the same after it has taken the lock. A
//     thread that begins a generation then waits for a holder, and unmaps the file. So no file outlives its close.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "file/mapped/mapped_file.hpp"
#include "file/mapped/signals_blocked.hpp"

namespace wherry::preload {

enum class Mode : std::uint8_t { unknown, own, user, ring, moving, shared, never };

/// The word of an Entry.
struct State {
  static constexpr unsigned kNumberBits = 40;
  static constexpr unsigned kModeBits = 4;
  static constexpr unsigned kGenerationBits = 64 - kNumberBits - kModeBits;
  /// Offsets from here on, 1 TiB, are left to the kernel.
  static constexpr std::uint64_t kNumbers = std::uint64_t{1} << kNumberBits;
  /// In mode `own` the lower half of the number is the cost of reads, in units of 256 ns. The upper half counts calls
  /// that have not returned.
  static constexpr std::uint64_t kInside = std::uint64_t{1} << (kNumberBits / 2);

  std::uint64_t word = 0;

  static constexpr State of(std::uint64_t generation, Mode mode, std::uint64_t number) {
    return {generation << (kNumberBits + kModeBits) | static_cast<std::uint64_t>(mode) << kNumberBits | number};
  }
  [[nodiscard]] constexpr std::uint64_t generation() const { return word >> (kNumberBits + kModeBits); }
  [[nodiscard]] constexpr Mode mode() const { return static_cast<Mode>(word >> kNumberBits & ((1U << kModeBits) - 1)); }
  [[nodiscard]] constexpr std::uint64_t number() const { return word & (kNumbers - 1); }
  [[nodiscard]] constexpr std::uint64_t spent() const { return number() & (kInside - 1); }
  [[nodiscard]] constexpr std::uint64_t inside() const { return number() / kInside; }
  [[nodiscard]] constexpr State with(Mode mode, std::uint64_t number) const { return of(generation(), mode, number); }
  [[nodiscard]] constexpr bool tracked() const { return mode() == Mode::user || mode() == Mode::shared; }
};

/// What a descriptor in mode `own` was opened for.
enum class Access : std::uint8_t { other, reads, writes, both };

/// Whether reads whose pages are in memory connect to the server of a mount, to compare the way past it. `wait`: only
/// after many.
enum class Hits : std::uint8_t { unknown, wait, connect };

/// The path chosen for an open file, or found from its name.
enum class Choice : std::uint8_t { none, automatic, cache, kernel, host };

struct alignas(64) Entry {
  std::atomic<std::uint64_t> state{0};
  // Only a hint: any thread that reads stores it, even after another thread has closed the descriptor.
  /// Where the last read ended, and how it was served (progress.hpp). If it may have a ring: writes before the next
  /// attempt.
  std::atomic<std::uint64_t> progress{0};
  std::atomic<Choice> choice{Choice::none};
  std::atomic<Access> access{Access::other};
  std::atomic<std::uint8_t> expected_hits{0};  ///< next reads whose pages are expected in memory
  std::atomic<Hits> hits{Hits::unknown};
  file::mapped::MappedFile file;  ///< of a tracked descriptor, by rule 2

  [[nodiscard]] State load() const {
    return {state.load(std::memory_order_acquire)};  // ENTRY acquire: the fields of that generation
  }
  /// The same for the holder of a SetupLock: sees a generation that another thread has begun, or that thread waits for
  /// it.
  [[nodiscard]] State load_in_setup() const {
    return {state.load(std::memory_order_seq_cst)};  // SETUP barrier: the lock was taken before
  }
  /// Whether reads may be made in place, or past a mount at the descriptor's offset. Those of a descriptor that may
  /// have a ring are the kernel's.
  [[nodiscard]] bool may_be_tracked() const {
    const Access now = access.load(std::memory_order_relaxed);
    return now == Access::other || now == Access::reads;
  }
  /// Compare-exchange. If it fails, returns false and sets `before` to the current value.
  bool exchange(State& before, State after) {
    // ENTRY release, SHARE-ALL barrier, SETUP barrier: the fields; a mode `own` is seen by a fork
    return state.compare_exchange_strong(before.word, after.word, std::memory_order_seq_cst);
  }
};

/// Sleeps. No cancellation point.
void pause_for(long nanoseconds) noexcept;

/// Waits while the condition is true. Sleeps after a while, since another thread may wait for a server.
template <typename Condition>
void wait_while(Condition condition) noexcept {
  constexpr int kYields = 64;
  for (int looks = 0; condition(); looks++) {
    if (looks < kYields)
      sched_yield();
    else
      pause_for(50'000);
  }
}

/// Waits until the mode is no longer `moving`.
State settled(const Entry& entry) noexcept;

/// Descriptors from this number on are left to the kernel.
inline constexpr int kDescriptors = 1 << 14;

/// Returns null if there is no entry for this number.
Entry* entry_of(int fd) noexcept;

/// Begins a generation, because the number now belongs to something unknown (rule 1). Waits for a thread that is just
/// mapping the file; so do Closing, never_track(fd) and remember().
void forget(int fd) noexcept;

/// Exists around a call that closes a descriptor (rule 1). Meanwhile the file is not mapped, which would keep it open.
/// Does nothing in the child of a vfork.
class Closing {
 public:
  explicit Closing(int fd) noexcept;
  ~Closing();
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;

 private:
  Entry* entry_;
  State closing_;
};

class SetupLock;

/// To be called if the file of a descriptor has changed, or can no longer be read in place: it is not tracked again in
/// this generation. The offset must be shared already.
void never_track(int fd) noexcept;
/// The same, for the holder of its SetupLock.
void never_track(int fd, const SetupLock& held) noexcept;

/// Unmaps the file of a descriptor. The mode and the offset stay.
void drop_mapping(int fd) noexcept;
/// The same, if the engine unmaps the file (file::mapped::Revoke).
void revoke_mapping(std::uintptr_t fd, std::uint32_t region) noexcept;

/// Begins a generation for a descriptor. `other`: something else may use its offset, otherwise it was opened here for
/// this access.
void remember(int fd, Access access) noexcept;

/// Held by the one thread that stores the fields of this descriptor (rule 2). The constructor only tries: if it fails,
/// the next call does the work. Signals are blocked meanwhile, because a handler might leave by a jump.
class SetupLock {
 public:
  explicit SetupLock(int fd) noexcept;
  ~SetupLock();
  SetupLock(const SetupLock&) = delete;
  SetupLock& operator=(const SetupLock&) = delete;
  explicit operator bool() const { return held_; }

 private:
  file::mapped::SignalsBlocked blocked_;
  bool held_;
};

/// Returns one past the highest number for which entry_of() was called.
int highest_descriptor() noexcept;

/// Unmaps the files of all descriptors.
void drop_all_mappings() noexcept;

/// Removes all entries and unmaps all files. For a process whose descriptors the hooks cannot follow, such as one with
/// several descriptor tables in this memory. Waits for a thread that is mapping a file. All offsets must be shared
/// already.
void stop_tracking() noexcept;

/// To be called in a forked child: resets what the parent's other threads had under way.
void repair_descriptors_after_fork() noexcept;

}  // namespace wherry::preload
