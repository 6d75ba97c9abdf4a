// SPDX-License-Identifier: Apache-2.0
// The memory that the merging process shares with its supervisor, and that outlives it: what it was doing when it died,
// and the counts that a successor goes on with.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace wherry::merge {

constexpr std::size_t kWorkerName = 32;  // a worker's id, in hexadecimal
constexpr std::size_t kCommand = 160;    // characters of a command line that are remembered
constexpr std::size_t kOutput = 512;     // of the path of an output, that of a directory's file as a rule
constexpr std::size_t kBusyThreads = 256;
constexpr std::size_t kMostNames = 4096;
constexpr std::size_t kMostNameBytes = std::size_t{256} << 10;

using WorkerName = std::array<char, kWorkerName>;

struct WorkerEntry {
  WorkerName name{};
  pid_t process = 0;                     ///< 0: not known here
  bool returns = false;                  ///< when a server dies, it will look for another
  std::array<char, kCommand> command{};  ///< its command line, printable; ends with a 0
  std::array<char, kOutput> output{};    ///< of its last file; empty: none came yet, or its path is longer
};

inline std::string_view name_of(const WorkerEntry& worker) { return {worker.name.data(), kWorkerName}; }

/// A set of workers that can lie in shared memory. More than fit are not remembered.
class WorkerSet {
 public:
  void insert(const WorkerEntry& worker) {
    if (contains(name_of(worker)) || count_ == kMostNames) return;
    workers_[count_] = worker;
    ++count_;
  }
  /// Returns the entry, if it was there.
  std::optional<WorkerEntry> erase(std::string_view worker) {
    const std::size_t at = find(worker);
    if (at == count_) return std::nullopt;
    return std::exchange(workers_[at], workers_[--count_]);
  }
  void clear() { count_ = 0; }
  /// Moves the entries of `others` here.
  void take(WorkerSet& others) {
    for (const WorkerEntry& worker : others) insert(worker);
    others.clear();
  }
  [[nodiscard]] const WorkerEntry* begin() const { return workers_.data(); }
  [[nodiscard]] const WorkerEntry* end() const { return workers_.data() + count_; }
  [[nodiscard]] bool contains(std::string_view worker) const { return find(worker) < count_; }
  [[nodiscard]] std::size_t size() const { return count_; }

 private:
  [[nodiscard]] std::size_t find(std::string_view worker) const {
    std::size_t at = 0;
    while (at < count_ && name_of(workers_[at]) != worker) ++at;
    return at;
  }

  std::size_t count_ = 0;
  std::array<WorkerEntry, kMostNames> workers_{};
};

/// Names that can lie in shared memory, each once. Those that do not fit are left out.
class NameList {
 public:
  void insert(std::string_view name) {
    for (std::size_t at = 0; at < size_; at += get(at).size() + 1) {
      if (get(at) == name) return;
    }
    if (name.size() >= text_.size() - size_) {
      cut_ = true;
      return;
    }
    name.copy(&text_[size_], name.size());
    size_ += name.size() + 1;  // with a 0
  }
  /// Calls it with each.
  template <typename Function>
  void each(const Function& function) const {
    for (std::size_t at = 0; at < size_; at += get(at).size() + 1) function(get(at));
  }
  [[nodiscard]] bool empty() const { return size_ == 0 && !cut_; }
  /// Whether one was left out.
  [[nodiscard]] bool is_cut() const { return cut_; }

 private:
  [[nodiscard]] std::string_view get(std::size_t at) const { return &text_[at]; }

  std::size_t size_ = 0;
  bool cut_ = false;
  std::array<char, kMostNameBytes> text_{};
};

/// A thread that is busy with a worker's file, and since when.
struct BusyThread {
  using Clock = std::chrono::steady_clock;
  std::atomic<Clock::rep> since{0};  ///< 0: the entry is free
  WorkerName worker{};
};

/// Lies in a shared mapping; the child writes, the parent reads when the child is dead, except where it says parent.
struct State {
  std::array<BusyThread, kBusyThreads> busy;
  // Sums over all children.
  std::atomic<std::uint64_t> files{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> batches{0};
  std::atomic<std::uint64_t> duplicates{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> finished{0};
  std::atomic<std::uint64_t> lost{0};  ///< workers that went without finishing; `gone` has the entries
  std::atomic<std::uint64_t> lost_bytes{0};
  std::atomic<std::uint64_t> joined{0};  ///< shards that were appended to their output
  std::atomic<std::uint64_t> joined_bytes{0};
  std::atomic<std::uint64_t> joining_time{0};   ///< microseconds
  std::atomic<std::uint64_t> present{0};        ///< workers that had not finished at the end
  std::atomic<bool> failed{false};              ///< the output could not be written
  std::atomic<bool> stopped{false};             ///< by a signal, to any of them
  std::atomic<bool> closing{false};             ///< outputs are being completed: what is without a journal is complete
  std::atomic<bool> end_resumed{false};         ///< a process before this one began to complete an output
  std::atomic<bool> end_was_incomplete{false};  ///< without all of its workers
  std::array<char, 256> address{};  ///< where the first child listened: workers look for its successors there
  WorkerSet connected;              ///< and not finished
  WorkerSet missing;                ///< were connected to a child that died, and have not come back
  WorkerSet gone;                   ///< went without finishing
  NameList outputs;                 ///< that were begun, or gone on with
  NameList refused_of;              ///< outputs of which a file was refused; under name_lists()
  NameList not_added;               ///< OUTPUT:PATH of objects that could not be added up; under name_lists()
  [[nodiscard]] std::uint64_t workers() const { return finished + lost + present; }
  /// A worker that went without finishing. It no longer counts as lost if it connects again.
  void lose(const WorkerEntry& worker) {
    ++lost;
    gone.insert(worker);
  }
  // Parent:
  std::uint64_t restarts = 0;
  std::uint64_t vain_restarts = 0;
  std::uint64_t progress_before = 0;  ///< the last restart
  bool careful = false;               ///< a child died of a file: the worker that posted it is to be found
  WorkerSet banned;
};

/// While it lives, the supervisor can see that this worker's file is being read or merged.
class Busy {
 public:
  Busy(State& state, std::string_view worker) {
    for (BusyThread& entry : state.busy) {
      BusyThread::Clock::rep free = 0;
      if (!entry.since.compare_exchange_strong(free, BusyThread::Clock::now().time_since_epoch().count())) continue;
      entry_ = &entry;
      worker.copy(entry.worker.data(), kWorkerName);
      return;
    }
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  ~Busy() {
    if (entry_ != nullptr) entry_->since = 0;
  }

 private:
  BusyThread* entry_ = nullptr;
};

}  // namespace wherry::merge
