// SPDX-License-Identifier: Apache-2.0
//
// What the processes of one sample share: a start barrier they pass together, an area in which they say where they are,
// and what each reports of itself. Shared by processes that are forked after it was made.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "bench/harness/system.hpp"

namespace wherry::bench {

/// Opens when all processes have arrived; until then they sleep.
class StartBarrier {
 public:
  /// Returns when `all` processes have called it. The last one notes the time and opens.
  void pass(std::uint32_t all);
  /// When it opened, in ns of the monotonic clock; 0: it has not.
  [[nodiscard]] std::int64_t opened_at() const { return opened_at_; }

 private:
  std::atomic<std::uint32_t> arrived_ = 0;
  std::atomic<std::uint32_t> open_ = 0;
  std::atomic<std::int64_t> opened_at_ = 0;
};

/// What one process tells. W: that process alone.
struct Report {
  std::atomic<bool> complete = false;
  std::uint64_t lap = 0;      ///< messages that go once round the memory it sends through
  std::uint64_t warm_up = 0;  ///< messages before the start barrier, of which those of the lap are the first
  std::int64_t lap_ns = 0;    ///< from the barrier `open` until it had received them
  std::int64_t part_ns = 0;   ///< from the start barrier until its part was over
  double cpu_seconds = 0;     ///< between the start barrier and then
  std::uint64_t context_switches = 0;
  std::uint64_t sum = 0;  ///< of what it wrote or read
  std::uint64_t memory_bytes = 0;
  char error[512] = {};

  void set_error(std::string_view text);
};

/// The rank of a sample that runs on another host, which shares no memory with this one. There is one such rank, and
/// one here. All calls throw std::runtime_error if the other host fails.
class RemoteRank {
 public:
  virtual ~RemoteRank() = default;
  [[nodiscard]] virtual std::uint32_t rank() const = 0;
  /// Waits until both ranks have called it. Sends lap and warm_up of `own`, and stores those of the other in `other`.
  virtual void meet(const Report& own, Report& other) = 0;
  /// As in ExchangeArea, which is shown to the remote rank, and read from it.
  virtual void post(std::string_view bytes) = 0;
  virtual std::string read() = 0;
};

class SampleMemory final : public ExchangeArea {
 public:
  /// For ranks 0 to `senders`, and room for `latencies` of each of two. Bystanders have the next ranks, and nothing but
  /// a report. `remote`: the rank that runs on another host, if one does; it must outlive this object.
  SampleMemory(std::uint32_t senders, std::size_t latencies, std::uint32_t bystanders = 0,
               RemoteRank* remote = nullptr);
  ~SampleMemory() override;
  SampleMemory(const SampleMemory&) = delete;
  SampleMemory& operator=(const SampleMemory&) = delete;

  void post(std::uint32_t rank, std::string_view bytes) override;
  std::string read(std::uint32_t rank) override;

  [[nodiscard]] std::uint32_t ranks() const { return ranks_; }
  [[nodiscard]] std::uint32_t processes() const { return processes_; }
  /// Passed when all links are open and their laps known.
  void open() { pass(shared_->open); }
  /// Passed when all links are warm.
  void start() { pass(shared_->start); }
  /// Passed when all processes have done their parts.
  void stop() { pass(shared_->stop); }
  /// Passed when no process needs the others' links any more.
  void leave() { pass(shared_->leave); }
  [[nodiscard]] std::int64_t opened_at() const { return shared_->open.opened_at(); }
  /// The longest lap that any process has reported; to be asked for when all links are open.
  [[nodiscard]] std::uint64_t lap() { return longest(&Report::lap); }
  /// The longest warm-up, in the same way.
  [[nodiscard]] std::uint64_t warm_up() { return longest(&Report::warm_up); }
  [[nodiscard]] std::int64_t started_at() const { return shared_->start.opened_at(); }
  [[nodiscard]] Report& report(std::uint32_t rank);
  /// What each of the first two processes measured, ns.
  [[nodiscard]] std::span<double> latencies(std::uint32_t rank);

 private:
  void pass(StartBarrier& barrier);
  [[nodiscard]] std::uint64_t longest(std::uint64_t Report::* messages);

  static constexpr std::size_t kExchangeBytes = 4000;
  struct Note {
    std::atomic<std::uint32_t> length = 0;  // Of the text and one more: 0 says that there is none yet.
    char text[kExchangeBytes] = {};
  };
  struct Shared {
    StartBarrier open;
    StartBarrier start;
    StartBarrier stop;
    StartBarrier leave;
  };

  std::uint32_t ranks_;
  std::uint32_t processes_;
  RemoteRank* remote_;
  std::size_t latencies_;
  std::size_t mapped_;
  std::byte* memory_;
  Shared* shared_;
  Note* notes_;
  Report* reports_;
};

}  // namespace wherry::bench
