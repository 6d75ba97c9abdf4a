// SPDX-License-Identifier: Apache-2.0
// Both ends of the slots that adapters/root/layout/slots.hpp describes: a large message is written once, where it will
// be read.
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

/// From how many bytes on a message may go into a slot, and up to how many. What does not goes through the ring.
inline constexpr std::size_t kLeastInSlot = std::size_t{16} << 10;
inline constexpr std::size_t kMostInSlot = std::size_t{16} << 20;

/// Memory that a peer maps. Its pages go back to the system with it.
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

/// This side's: it receives. Lives as long as a message in one of the slots does.
class OwnMessageSlots {
 public:
  /// Slots of at least so many bytes, for the peer to map. Throws Error.
  OwnMessageSlots(Windows windows, std::size_t bytes, std::uint32_t generation = 0);
  OwnMessageSlots(const OwnMessageSlots&) = delete;
  OwnMessageSlots& operator=(const OwnMessageSlots&) = delete;
  ~OwnMessageSlots() = default;

  /// The message that the peer says is there. Empty if that cannot be.
  std::span<std::byte> take(std::uint32_t slot, std::uint32_t bytes);
  /// From any thread.
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

/// All of this side's, as they grow with the messages.
class MessageSlotGenerations {
 public:
  /// A message of so many bytes has come over the ring: from now on the peer may write such where they will be read.
  void offer(Windows windows, std::size_t bytes) noexcept;

  struct Taken {
    std::shared_ptr<OwnMessageSlots> slots;  ///< null: that message cannot be
    std::uint32_t slot = 0;                  ///< of these
    std::span<std::byte> content;
  };
  /// The message that the peer says is in the slot of that number.
  Taken take(std::uint32_t number, std::uint32_t bytes);

 private:
  std::vector<std::shared_ptr<OwnMessageSlots>> slots_;  ///< what the peer may still use, by generation
  std::uint32_t generations_ = 0;
};

/// The peer's: this side sends.
class PeersMessageSlots {
 public:
  /// Writes the message into a slot, if the peer has one that is free and large enough; the return value is to be sent.
  std::optional<layout::RootInSlot> write(Windows windows, std::span<const std::byte> message);
  /// Where none was free for so many bytes: waits for one. False: none will be soon.
  bool await(std::size_t bytes);

 private:
  bool find(Windows windows, std::size_t bytes);
  bool find_generation(Windows windows, std::uint32_t generation);
  layout::RootSlotsPage& page() { return *reinterpret_cast<layout::RootSlotsPage*>(page_.bytes().data()); }
  /// Whether one is in that state.
  bool any(layout::RootSlot state);

  MappedWindow page_;
  MappedWindow slots_;
  std::size_t slot_bytes_ = 0;
  std::uint32_t generation_ = 0;
  unsigned looked_ = 0;
};

}  // namespace wherry::root
