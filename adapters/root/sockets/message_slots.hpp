// SPDX-License-Identifier: Apache-2.0
// The receiver's and the sender's end of the slots that adapters/root/layout/slots.hpp describes. The sender copies a
// large message once, to where the receiver reads it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <wherry/stream.hpp>

#include "adapters/root/layout/slots.hpp"

namespace wherry::root {

/// The smallest and the largest message that uses a slot, in bytes. All others go through the ring.
inline constexpr std::size_t kLeastInSlot = std::size_t{16} << 10;
inline constexpr std::size_t kMostInSlot = std::size_t{16} << 20;

/// Anonymous memory for a peer to map. The destructor removes its pages, also from the peer's mapping.
class Memory {
 public:
  /// Throws Error.
  explicit Memory(std::size_t bytes);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

/// The receiver's end: one generation of slots. Each message in a slot shares its ownership.
class OwnMessageSlots {
 public:
  /// Registers slots of at least `bytes` (at most kMostInSlot) for the peer to map. Throws Error.
  OwnMessageSlots(Windows windows, std::size_t bytes, std::uint32_t generation = 0);
  OwnMessageSlots(const OwnMessageSlots&) = delete;
  OwnMessageSlots& operator=(const OwnMessageSlots&) = delete;
  ~OwnMessageSlots() = default;

  /// Takes the message that the peer announced in `slot`. Empty if the announcement is invalid: no such slot, too long,
  /// or already taken.
  std::span<std::byte> take(std::uint32_t slot, std::uint32_t bytes);
  /// Frees a slot that was taken, and wakes the sender if it waits. Thread-safe.
  void free(std::uint32_t slot);
  [[nodiscard]] std::size_t slot_bytes() const { return slot_bytes_; }
  [[nodiscard]] std::uint32_t generation() const { return generation_; }

 private:
  layout::RootSlotsPage& page() { return *reinterpret_cast<layout::RootSlotsPage*>(page_.bytes().data()); }

  std::size_t slot_bytes_;
  std::uint32_t generation_;
  Memory slots_;
  Memory page_;
  std::array<std::atomic<bool>, layout::kRootSlots> taken_{};
};

/// The receiver's end: all generations of slots. Adds one when larger messages arrive.
class MessageSlotGenerations {
 public:
  /// To be called after a message of `bytes` has arrived through the ring. If the current slots are too small for it,
  /// registers larger ones. After a failure no more slots are added, and messages use the ring.
  void offer(Windows windows, std::size_t bytes) noexcept;

  struct Taken {
    std::shared_ptr<OwnMessageSlots> slots;  ///< null: the announcement is invalid
    std::uint32_t slot = 0;                  ///< index within `slots`
    std::span<std::byte> content;
  };
  /// Takes the message that the peer announced in slot `number`, counted across generations.
  Taken take(std::uint32_t number, std::uint32_t bytes);

 private:
  std::vector<std::shared_ptr<OwnMessageSlots>> slots_;  ///< generations that the peer may still use, in order
  std::uint32_t generations_ = 0;
};

/// The sender's end: writes messages into the peer's slots.
class PeersMessageSlots {
 public:
  /// Copies the message into a slot if the peer has a free one that is large enough. The caller must send the returned
  /// value through the stream instead of the message. Empty if there is no such slot.
  std::optional<layout::RootInSlot> write(Windows windows, std::span<const std::byte> message);
  /// Blocks until a slot for `bytes` is free. False if there is no such slot, if the peer's program has taken the
  /// messages in all slots, or after 500 ms.
  bool await(std::size_t bytes);

 private:
  bool find(Windows windows, std::size_t bytes);
  bool find_generation(Windows windows, std::uint32_t generation);
  layout::RootSlotsPage& page() { return *reinterpret_cast<layout::RootSlotsPage*>(page_.bytes().data()); }
  /// Whether some slot is in `state`.
  bool any(layout::RootSlot state);

  MappedWindow page_;
  MappedWindow slots_;
  std::size_t slot_bytes_ = 0;
  std::uint32_t generation_ = 0;
  unsigned looked_ = 0;
};

}  // namespace wherry::root
