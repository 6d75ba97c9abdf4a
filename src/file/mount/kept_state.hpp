// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "file/client/host_link.hpp"
#include "file/mount/identity.hpp"
#include "file/mount/layout/kept_state.hpp"
#include "file/wire/held_locks.hpp"

namespace wherry::file::mount {

/// The state that a killed daemon has left.
struct KeptSnapshot {
  struct Node {
    Identity identity{};
    std::uint64_t references = 0;
  };
  struct Name {
    NodeId node = 0;
    std::uint64_t order = 0;  ///< higher for later names
  };

  std::unordered_map<NodeId, Node> nodes{};
  std::unordered_map<NodeId, std::unordered_map<std::string, Name>> names{};  ///< by directory
  std::map<std::uint64_t, layout::KeptOpen> open{};
  std::map<std::uint64_t, HostBoot> boots{};  ///< by the open file's number
  struct Renaming {
    std::uint64_t flags = 0;
    std::string from{};
    std::string to{};
  };
  struct Locker {
    layout::KeptLocker locker{};
    std::vector<std::uint64_t> open{};
    std::shared_ptr<HeldLocks> held = std::make_shared<HeldLocks>();
  };
  std::map<std::uint64_t, Locker> lockers{};
  std::map<std::uint64_t, Renaming> renaming{};              ///< by the kernel's request
  std::unordered_map<std::uint64_t, std::uint64_t> begun{};  ///< by the kernel's request
  std::map<layout::KeptWord, std::uint64_t> numbers{};       ///< values of words without a key
  std::map<layout::KeptWord, std::string> texts{};

  [[nodiscard]] std::uint64_t number(layout::KeptWord word) const;
  [[nodiscard]] std::string text(layout::KeptWord word) const;
  /// Calls `call` for each name and its directory, the oldest name first.
  void for_each_name(const std::function<void(NodeId parent, const std::string& text, NodeId node)>& call) const;

 private:
  friend class KeptState;
  void apply(std::span<const std::byte> record);
  void apply(layout::KeptWord word, std::uint64_t number, std::uint64_t value);
  std::uint64_t last_order_ = 0;
};

/// A log of what the kernel knows of a mount, in memory that outlives this process. The next daemon continues it.
///
/// Thread-safe. Blocks only while a log that has grown is rewritten.
class KeptState {
 public:
  /// Throws Error.
  /// @param memory  from `make_memory`, of this daemon or of a killed one
  explicit KeptState(const UniqueFd& memory);
  KeptState(const KeptState&) = delete;
  KeptState& operator=(const KeptState&) = delete;
  ~KeptState();

  /// Throws Error.
  static UniqueFd make_memory();

  [[nodiscard]] KeptSnapshot load() const;

  /// Adds records atomically: all of them become valid at its end, or none.
  class Batch {
   public:
    /// @param state  null: nothing is kept
    explicit Batch(KeptState* state);
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    ~Batch();

    void add_node(NodeId node, const Identity& identity);
    void add(layout::KeptWord word, std::uint64_t number, std::uint64_t value = 0);
    void add_name(layout::KeptWord word, NodeId parent, std::string_view name, NodeId node = 0);
    void add_renaming(std::uint64_t request, const KeptSnapshot::Renaming& renaming);
    void add_locker(const layout::KeptLocker& locker);
    void add_lock(std::uint64_t locker, const layout::FileLock& lock);
    void add_open(const layout::KeptOpen& open);
    void add_boot(std::uint64_t open, const HostBoot& seen);
    void add_text(layout::KeptWord word, std::string_view text);

   private:
    KeptState* state_;
    std::unique_lock<std::mutex> lock_;
  };

 private:
  [[nodiscard]] std::byte* half(std::uint32_t which) const;
  std::byte* make_room(std::size_t bytes);
  void commit();
  void rewrite() noexcept;
  void write(const KeptSnapshot& snapshot);
  template <class Record>
  void put(layout::KeptWord word, Record record, std::string_view text = {});
  void put_node(NodeId node, const Identity& identity);
  void put_renaming(std::uint64_t request, const KeptSnapshot::Renaming& renaming);
  void put_lock(std::uint64_t locker, const layout::FileLock& lock);
  void put_boot(std::uint64_t open, const HostBoot& seen);
  void put_text(layout::KeptWord word, std::string_view text);

  std::mutex mutex_;
  int memory_ = -1;
  layout::KeptStart* start_ = nullptr;
  std::uint32_t half_ = 0;
  std::uint64_t used_ = 0;  ///< includes uncommitted records
  std::uint64_t rewrite_at_ = 0;
};

}  // namespace wherry::file::mount
