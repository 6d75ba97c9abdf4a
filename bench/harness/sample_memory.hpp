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
  std::uint64_t lap = 0;          ///< messages that go once round the memory it sends through
  std::uint64_t warm_up = 0;      ///< messages before the start barrier, of which those of the lap are the first
  std::int64_t lap_ended_at = 0;  ///< when it had received them, ns of the monotonic clock
  std::int64_t ended_at = 0;      ///< when its part was over, ns of the monotonic clock
  double cpu_seconds = 0;         ///< between the start barrier and then
  std::uint64_t context_switches = 0;
  std::uint64_t sum = 0;  ///< of what it wrote or read
  std::uint64_t memory_bytes = 0;
  char error[512] = {};

  void set_error(std::string_view text);
};

class SampleMemory final : public ExchangeArea {
 public:
  /// For ranks 0 to `senders`, and room for `latencies` of each of two. Bystanders have the next ranks, and nothing but
  /// a report.
  SampleMemory(std::uint32_t senders, std::size_t latencies, std::uint32_t bystanders = 0);
  ~SampleMemory() override;
  SampleMemory(const SampleMemory&) = delete;
  SampleMemory& operator=(const SampleMemory&) = delete;

  void post(std::uint32_t rank, std::string_view bytes) override;
  std::string read(std::uint32_t rank) override;

  [[nodiscard]] std::uint32_t ranks() const { return ranks_; }
  [[nodiscard]] std::uint32_t processes() const { return processes_; }
  /// Passed when all links are open and their laps known.
  void open() { shared_->open.pass(ranks_); }
  /// Passed when all links are warm.
  void start() { shared_->start.pass(ranks_); }
  /// Passed when all processes have done their parts.
  void stop() { shared_->stop.pass(ranks_); }
  /// Passed when no process needs the others' links any more.
  void leave() { shared_->leave.pass(ranks_); }
  [[nodiscard]] std::int64_t opened_at() const { return shared_->open.opened_at(); }
  /// The longest lap that any process has reported; to be asked for when all links are open.
  [[nodiscard]] std::uint64_t lap() { return longest(&Report::lap); }
  /// The longest warm-up, in the same way.
  [[nodiscard]] std::uint64_t warm_up() { return longest(&Report::warm_up); }
  [[nodiscard]] std::int64_t started_at() const { return shared_->start.opened_at(); }
  [[nodiscard]] Report& report(std::uint32_t rank);
  /// When the process of this rank began to send its last message (Question::asleep).
  [[nodiscard]] std::atomic<std::int64_t>& sent_at(std::uint32_t rank) { return shared_->sent_at[rank].ns; }
  /// What each of the first two processes measured, ns.
  [[nodiscard]] std::span<double> latencies(std::uint32_t rank);

 private:
  [[nodiscard]] std::uint64_t longest(std::uint64_t Report::* messages);

  static constexpr std::size_t kExchangeBytes = 4000;
  struct Note {
    std::atomic<std::uint32_t> length = 0;  // Of the text and one more: 0 says that there is none yet.
    char text[kExchangeBytes] = {};
  };
  struct alignas(64) Stamp {
    std::atomic<std::int64_t> ns = 0;
  };
  struct Shared {
    StartBarrier open;
    StartBarrier start;
    StartBarrier stop;
    StartBarrier leave;
    Stamp sent_at[2];
  };

  std::uint32_t ranks_;
  std::uint32_t processes_;
  std::size_t latencies_;
  std::size_t mapped_;
  std::byte* memory_;
  Shared* shared_;
  Note* notes_;
  Report* reports_;
};

}  // namespace wherry::bench
