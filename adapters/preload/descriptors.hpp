// SPDX-License-Identifier: Apache-2.0
//
// What is known of each descriptor of this process. An entry costs nothing until the kernel has spent some time on
// reads of its descriptor.
//
// An entry is one 64-bit word (state) and fields that belong to it. The word holds a generation, a mode and a number:
//
// clang-format off
//   mode      whose offset counts     the number                      goes to
//   unknown   the kernel's            spent on reads so far           shared, never
//   own       the kernel's            the same, and calls inside      moving, never     (opened here to be read only)
//   user      the number              the offset                      moving
//   moving    neither, for a moment   that of before                  user, shared
//   shared    the kernel's            0                               never
//   never     the kernel's            0                               -
// clang-format on
//
// and from each of them to `unknown` or `own` of the next generation, when its descriptor is closed or opened.
//
// Rules that keep the bytes of one file from being taken for another's:
//  1. The generation grows before a descriptor is closed, and after one is opened.
//  2. Fields are stored by the thread that holds a SetupLock, before the word goes to `user` or `shared` by a
//     compare-exchange from the word that was there before; so they are those of that generation.
//  3. Bytes that were read with the help of the fields count only if the generation is the same afterwards. So the
//     generation grows before a file is unmapped. The mode and the number stay then.
//  4. In mode `user` no descriptor of another number or process has the same offset: it was opened here, and each call
//     that would share it (dup, fork, exec, sendmsg ...) moves it to `shared` first, with the kernel's offset set.
//  5. The holder of a SetupLock maps a file only if the generation is still the same after it has taken the lock. A
//     thread that begins a generation waits for a holder afterwards, and then unmaps. So no file outlives its close.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "file/mapped/mapped_file.hpp"
#include "file/mapped/signals_blocked.hpp"

namespace wherry::preload {

enum class Mode : std::uint8_t { unknown, own, user, moving, shared, never };

/// The word of an entry.
struct State {
  static constexpr unsigned kNumberBits = 40;
  static constexpr unsigned kModeBits = 4;
  static constexpr unsigned kGenerationBits = 64 - kNumberBits - kModeBits;
  /// Offsets of at least this, 1 TiB, are the kernel's.
  static constexpr std::uint64_t kNumbers = std::uint64_t{1} << kNumberBits;
  /// Of mode `own`: the lower half of the number is what reads have cost, in 256 ns, the upper one counts calls that
  /// have not returned.
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

/// The path chosen for an open file, or found when it was looked at.
enum class Choice : std::uint8_t { none, automatic, cache };

struct alignas(64) Entry {
  std::atomic<std::uint64_t> state{0};
  // Any thread that reads stores it, also after another one has closed the descriptor: a hint.
  std::atomic<std::uint64_t> progress{0};  ///< where the last read ended, and how it was served (progress.hpp)
  std::atomic<Choice> choice{Choice::none};
  file::mapped::MappedFile file;  ///< of a tracked descriptor, by rule 2

  [[nodiscard]] State load() const {
    return {state.load(std::memory_order_acquire)};  // ENTRY acquire: the fields of that generation
  }
  /// The same for the holder of a SetupLock: a generation that another thread has begun, or that one waits for it.
  [[nodiscard]] State load_in_setup() const {
    return {state.load(std::memory_order_seq_cst)};  // SETUP barrier: the lock was taken before
  }
  /// False, and `before` is what stands there, if it is not what it was.
  bool exchange(State& before, State after) {
    // ENTRY release, SHARE-ALL barrier, SETUP barrier: the fields; a mode `own` is seen by a fork
    return state.compare_exchange_strong(before.word, after.word, std::memory_order_seq_cst);
  }
};

/// Waits until the mode is no longer `moving`.
State settled(const Entry& entry) noexcept;

/// Descriptors from this number on are the kernel's alone.
inline constexpr int kDescriptors = 1 << 14;

/// Null: no entry for such a number.
Entry* entry_of(int fd) noexcept;

/// The number of a descriptor was given to something unknown: rule 1. Waits for a thread that maps its file just now,
/// as all of these do.
void forget(int fd) noexcept;

/// Around a call that closes a descriptor: rule 1. Its file is not mapped meanwhile, which would keep it open. Nothing
/// in the child of a vfork.
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

/// The file of a descriptor is another now, or cannot be read in place any more: never again in this generation. The
/// offset must be shared already.
void never_track(int fd) noexcept;
/// The same by the holder of its lock.
void never_track(int fd, const SetupLock& held) noexcept;

/// Unmaps the file of a descriptor, whose mode and offset stay.
void drop_mapping(int fd) noexcept;
/// The same where the engine unmaps it (file::mapped::Revoke).
void revoke_mapping(std::uintptr_t fd, std::uint32_t region) noexcept;

/// A descriptor was opened here. `alone`: to be read only, and nothing else has its offset.
void remember(int fd, bool alone) noexcept;

/// Held by the one thread that stores fields, of this descriptor (rule 2). It is tried, not waited for: the next call
/// will do. No handler runs meanwhile, which might leave by a jump.
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

/// One past the highest number whose entry was ever asked for.
int highest_descriptor() noexcept;

/// Unmaps the files of all descriptors.
void drop_all_mappings() noexcept;

/// No descriptor has an entry any more, and no file is mapped: several tables of descriptors are used in this memory.
/// Waits for a thread that maps one. All offsets must be shared already.
void stop_tracking() noexcept;

/// In a forked child: what another thread was doing then will never be done.
void repair_descriptors_after_fork() noexcept;

}  // namespace wherry::preload
