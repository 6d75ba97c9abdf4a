// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "file/server/backing.hpp"
#include "file/server/lock_graph.hpp"
#include "file/server/tickets.hpp"
#include "file/wire/lock_description.hpp"

namespace wherry::file {

/// Limits how many files clients may have open: over all connections, and over one.
class HandleBudget {
 public:
  /// From this process's limit of open files: half of it for all clients, a quarter of that half for one client.
  static HandleBudget of_process();
  /// A budget of one client's size.
  static HandleBudget for_one() { return {of_process().each_, of_process().each_}; }
  HandleBudget(std::size_t all, std::size_t each) : all_(all), each_(each) {}
  HandleBudget(HandleBudget&& other) noexcept : all_(other.all_), each_(other.each_) {}

  [[nodiscard]] std::size_t each() const { return each_; }
  /// Thread-safe. False: the budget is exhausted.
  bool take() {
    if (used_.fetch_add(1, std::memory_order_relaxed) < all_) return true;
    give_back(1);
    return false;
  }
  void give_back(std::size_t count) { used_.fetch_sub(count, std::memory_order_relaxed); }

 private:
  std::size_t all_;
  std::size_t each_;
  std::atomic<std::size_t> used_{0};
};

/// A file or directory that a client has open, or a lock owner (open_locks).
struct OpenFile {
  std::unique_ptr<Backing> backing{};  ///< null: a lock owner
  bool appends = false;
  std::unique_ptr<LockDescription> locks{};
  std::unique_ptr<LockGraph::Member> waits{};  ///< of a lock owner; null: it is not known whose
  TicketMaker tickets{};                       ///< tickets made of this handle
  std::shared_ptr<Grant> by{};                 ///< the ticket that opened this file; null: none did
};

/// The open files of one client, by handle. A closed handle is never reused for a later file.
class Handles {
 public:
  explicit Handles(HandleBudget& budget) : budget_(budget) {}
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
  ~Handles();

  /// Reserves room for one more file. Returns it at destruction unless a file was added.
  class Room {
   public:
    explicit Room(Handles& handles) : handles_(handles), error_(handles.reserve()) {}
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    ~Room() {
      if (error_ == 0 && !used_) handles_.budget_.give_back(1);
    }
    /// 0, EMFILE if this client is at its limit, ENFILE if all clients together are.
    [[nodiscard]] int error() const { return error_; }
    /// Adds a file; once, and only if `error` is 0. Returns its handle.
    std::uint64_t add(OpenFile file) {
      const std::uint64_t handle = handles_.add(std::move(file));
      used_ = true;
      return handle;
    }

   private:
    Handles& handles_;
    int error_;
    bool used_ = false;
  };
  /// Null: no such file. Valid until the next call that adds or closes.
  [[nodiscard]] OpenFile* find(std::uint64_t handle);
  /// As `find`, for lock owners, which `find` ignores.
  [[nodiscard]] OpenFile* find_locks(std::uint64_t handle);
  /// Returns EBADF, or the error of close(2).
  int close(std::uint64_t handle);

 private:
  struct Slot {
    OpenFile file;
    std::uint32_t generation = 1;
  };
  [[nodiscard]] int reserve();
  std::uint64_t add(OpenFile file);
  [[nodiscard]] Slot* slot_of(std::uint64_t handle);

  HandleBudget& budget_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::size_t open_ = 0;
};

}  // namespace wherry::file
