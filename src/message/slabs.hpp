// SPDX-License-Identifier: Apache-2.0
// Allocates blocks of a publisher's pool, and counts their users. All bookkeeping is in the publisher's private memory,
// out of reach of peers.
//
// May include: base, layout, memory, fabric.
//
// Block sizes are powers of two of a grain. A freed block joins the ready queue of its size, whole, for the next
// message of that size. So a flow of messages uses few blocks, which stay in the caches. The queue is first in, first
// out. Last in, first out loses a fifth at 64 KiB (measured): the lines of the block just read must be taken from a
// core that has barely released them. Blocks beyond the recent peak of use leave the queue. Larger blocks are split,
// and neighbours merged (a buddy system), only when a size has run out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "memory/shared_memory.hpp"

namespace wherry::message {

class Slabs {
 public:
  using Block = std::uint32_t;
  static constexpr Block kNone = UINT32_MAX;

  /// The size of `memory` must be a power of two. Throws std::bad_alloc.
  explicit Slabs(std::shared_ptr<memory::SharedMemory> memory);
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;

  /// Takes a block of at least `bytes` from the ready queue, with one user. kNone: the queue is empty.
  Block take_ready(std::size_t bytes) noexcept;
  /// Takes a block as take_ready(), splitting and merging free blocks if necessary. kNone: there is none.
  Block take(std::size_t bytes) noexcept;
  /// Adds users.
  void share(Block block, std::uint32_t users = 1) noexcept { units_[block].users += users; }
  /// Removes a user. The last one frees the block.
  void drop(Block block) noexcept {
    if (--units_[block].users == 0) free(block);
  }

  [[nodiscard]] std::size_t offset(Block block) const noexcept { return std::size_t{block} << grain_shift_; }
  [[nodiscard]] std::byte* start(Block block) const noexcept { return start_ + offset(block); }
  [[nodiscard]] std::size_t capacity() const noexcept { return bytes_; }
  /// Blocks with at least one user.
  [[nodiscard]] std::size_t in_use() const noexcept { return in_use_; }

  // Reference count, as a loan may outlive its publisher: the last release() deletes.
  void hold() noexcept { ++holders_; }
  void release() noexcept {
    if (--holders_ == 0) delete this;
  }

 private:
  static constexpr unsigned kMinGrainShift = 7;    ///< two lines: the CPU fetches neighbouring lines together
  static constexpr unsigned kMostUnitsShift = 22;  ///< bounds the bookkeeping of a huge pool
  static constexpr unsigned kOrders = kMostUnitsShift + 1;
  static constexpr std::size_t kMostSpare = 4;   ///< blocks kept ready beyond the recent peak of use
  static constexpr std::uint32_t kWindow = 256;  ///< blocks freed while a peak counts as recent

  enum class State : std::uint8_t { inside = 0, used, ready, apart };  ///< inside: not the first unit of a block

  /// Describes the first unit of a block. Other entries are not touched, so they take no memory.
  struct Unit {
    Block next;
    union {
      Block previous;       ///< while apart
      std::uint32_t users;  ///< while used
    };
    std::uint8_t order;
    State state;
  };
  struct Queue {
    Block first = kNone;
    Block last = kNone;
  };
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  [[nodiscard]] unsigned order_of(std::size_t bytes) const noexcept;
  Block use(Block block) noexcept;
  void free(Block block) noexcept;
  Block pop_ready(unsigned order) noexcept;
  Block split(unsigned order) noexcept;
  void merge_ready() noexcept;
  void merge(Block block) noexcept;
  void put_apart(Block block, unsigned order) noexcept;
  void unlink(Block block) noexcept;

  std::shared_ptr<memory::SharedMemory> memory_;
  std::byte* start_;
  std::size_t bytes_;
  unsigned grain_shift_;
  unsigned top_order_;
  std::unique_ptr<Unit[], Free> units_;
  std::array<Queue, kOrders> ready_{};  ///< queues of blocks that were used before
  std::array<Block, kOrders> apart_;    ///< lists of the other free blocks, whose buddy is not free
  std::size_t in_use_ = 0;
  std::size_t ready_count_ = 0;
  std::size_t peak_ = 0;  ///< most in use at once, in this window and in the one before
  std::size_t last_peak_ = 0;
  std::uint32_t freed_ = 0;
  std::size_t holders_ = 1;
};

}  // namespace wherry::message
