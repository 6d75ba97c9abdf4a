// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "file/server/backing.hpp"
#include "file/server/tickets.hpp"
#include "file/wire/lock_description.hpp"

namespace wherry::file {

/// How many files may be open for clients, of all connections together and of one.
class HandleBudget {
 public:
  /// From the limit of open files of this process: half of it is for files, a quarter of that for one client.
  static HandleBudget of_process();
  /// As much as one client may have of that.
  static HandleBudget for_one() { return {of_process().each_, of_process().each_}; }
  HandleBudget(std::size_t all, std::size_t each) : all_(all), each_(each) {}
  HandleBudget(HandleBudget&& other) noexcept : all_(other.all_), each_(other.each_) {}

  [[nodiscard]] std::size_t each() const { return each_; }
  /// From any thread. False: the budget of all is used up.
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

/// A file or directory that a client has open, or an owner of locks (open_locks).
struct OpenFile {
  std::unique_ptr<Backing> backing{};  ///< null: an owner of locks
  bool appends = false;
  std::unique_ptr<LockDescription> locks{};
  TicketMaker tickets{};        ///< of those that were made of it
  std::shared_ptr<Grant> by{};  ///< of the ticket that it was opened by
};

/// The files of one client, by handle. A handle that was closed does not name the next file that is opened.
class Handles {
 public:
  explicit Handles(HandleBudget& budget) : budget_(budget) {}
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
  ~Handles();

  /// Room for one more, given up at the end unless a file was added.
  class Room {
   public:
    explicit Room(Handles& handles) : handles_(handles), error_(handles.reserve()) {}
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    ~Room() {
      if (error_ == 0 && !used_) handles_.budget_.give_back(1);
    }
    /// 0, EMFILE if this client has as many as it may, ENFILE if all have together.
    [[nodiscard]] int error() const { return error_; }
    /// Once, if there is room. Returns the handle.
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
  /// Null if there is none. Valid until the next call that adds or closes.
  [[nodiscard]] OpenFile* find(std::uint64_t handle);
  /// The same for owners of locks, which `find` does not know.
  [[nodiscard]] LockDescription* find_locks(std::uint64_t handle);
  /// EBADF, or what close(2) says.
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
