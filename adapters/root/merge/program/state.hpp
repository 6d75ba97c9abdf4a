// SPDX-License-Identifier: Apache-2.0
// The memory that the merging process shares with its supervisor, and that outlives it. It contains what the process
// was doing when it died, and the counts that its successor continues.
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

constexpr std::size_t kWorkerName = 32;  // characters of a worker's id in hexadecimal
constexpr std::size_t kCommand = 160;    // characters of a command line, with the final 0; the rest is cut off
constexpr std::size_t kOutput = 512;     // characters of an output's path, with the final 0
constexpr std::size_t kBusyThreads = 256;
constexpr std::size_t kMostNames = 4096;
constexpr std::size_t kMostNameBytes = std::size_t{256} << 10;

using WorkerName = std::array<char, kWorkerName>;

struct WorkerEntry {
  WorkerName name{};
  pid_t process = 0;                     ///< 0: not visible here
  bool returns = false;                  ///< if the server dies, the worker looks for another
  std::array<char, kCommand> command{};  ///< its command line, printable, with a final 0
  std::array<char, kOutput> output{};    ///< path of its last file's output, perhaps cut off; empty: no file came yet
};

inline std::string_view name_of(const WorkerEntry& worker) { return {worker.name.data(), kWorkerName}; }

/// A set of at most kMostNames workers, for shared memory. Further workers are ignored.
class WorkerSet {
 public:
  void insert(const WorkerEntry& worker) {
    if (contains(name_of(worker)) || count_ == kMostNames) return;
    workers_[count_] = worker;
    ++count_;
  }
  /// Returns the removed entry; empty if there was none.
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

/// A set of names, for shared memory. Names that do not fit are left out.
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
  /// Calls `function` with each name.
  template <typename Function>
  void each(const Function& function) const {
    for (std::size_t at = 0; at < size_; at += get(at).size() + 1) function(get(at));
  }
  [[nodiscard]] bool empty() const { return size_ == 0 && !cut_; }
  /// Returns whether a name was left out.
  [[nodiscard]] bool is_cut() const { return cut_; }

 private:
  [[nodiscard]] std::string_view get(std::size_t at) const { return &text_[at]; }

  std::size_t size_ = 0;
  bool cut_ = false;
  std::array<char, kMostNameBytes> text_{};
};

/// A thread that reads or merges a worker's file, and since when.
struct BusyThread {
  using Clock = std::chrono::steady_clock;
  std::atomic<Clock::rep> since{0};  ///< 0: the entry is free
  WorkerName worker{};
};

/// Lies in a shared mapping. The merging process (child) writes it. The supervisor (parent) reads it after the child's
/// death; it also writes the members under "Parent".
struct State {
  std::array<BusyThread, kBusyThreads> busy;
  // Sums over all children.
  std::atomic<std::uint64_t> files{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> batches{0};
  std::atomic<std::uint64_t> duplicates{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> finished{0};
  std::atomic<std::uint64_t> lost{0};  ///< workers that left without finishing; `gone` has their entries
  std::atomic<std::uint64_t> lost_bytes{0};
  std::atomic<std::uint64_t> joined{0};  ///< shards that were appended to their output
  std::atomic<std::uint64_t> joined_bytes{0};
  std::atomic<std::uint64_t> joining_time{0};   ///< microseconds
  std::atomic<std::uint64_t> present{0};        ///< workers that had not finished at the end
  std::atomic<bool> failed{false};              ///< the output could not be written
  std::atomic<bool> stopped{false};             ///< the parent or a child got SIGINT or SIGTERM
  std::atomic<bool> closing{false};             ///< outputs are being completed: those without a journal are complete
  std::atomic<bool> end_resumed{false};         ///< an earlier process began to complete an output
  std::atomic<bool> end_was_incomplete{false};  ///< ... before all of its workers had finished
  std::array<char, 256> address{};              ///< where the first child listened: workers look for successors there
  WorkerSet connected;                          ///< workers that are connected and have not finished
  WorkerSet missing;    ///< workers that were connected to a child that died, and have not come back
  WorkerSet gone;       ///< workers that left without finishing
  NameList outputs;     ///< outputs that were begun or continued
  NameList refused_of;  ///< outputs of which a file was refused; guarded by name_lists()
  NameList not_added;   ///< OUTPUT:PATH of objects that could not be added up; guarded by name_lists()
  [[nodiscard]] std::uint64_t workers() const { return finished + lost + present; }
  /// Counts a worker that left without finishing as lost. serve() corrects the count if it connects again.
  void lose(const WorkerEntry& worker) {
    ++lost;
    gone.insert(worker);
  }
  // Parent:
  std::uint64_t restarts = 0;
  std::uint64_t vain_restarts = 0;    ///< consecutive restarts without progress between them
  std::uint64_t progress_before = 0;  ///< files merged and shards joined before the last restart
  bool careful = false;               ///< a child has crashed: files are tried one by one, to find the culprit
  WorkerSet banned;
};

/// While one exists, the supervisor can see that this worker's file is being read or merged.
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
