// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace wherry::bench::root {

/// Where the processes of a sample wait.
enum class Barrier : std::uint8_t {
  start,   ///< until all are there
  merge,   ///< until all workers have handed over their last file
  memory,  ///< until the time has been taken
  leave,   ///< until memory has been measured
  end,     ///< until everything has been measured
};

/// What they tell.
enum class Step : std::uint8_t {
  listening,  ///< the server has an address
  ready,      ///< a worker is connected
  sent,       ///< a worker has handed over its last file
  closed,     ///< a process of workers has nothing more to do
  done,       ///< the server has nothing more to do
  full,       ///< a worker holds a whole file
};

/// What coordinator, server and workers of a sample share: a page, and barriers that the coordinator
/// opens. Made before the processes are forked. Any thread of any of them may use it.
class SampleMemory {
 public:
  SampleMemory();
  ~SampleMemory();
  SampleMemory(const SampleMemory&) = delete;
  SampleMemory& operator=(const SampleMemory&) = delete;

  /// To be called first in each process that was forked off.
  void enter();
  /// Blocks without using the CPU.
  void pass(Barrier barrier) const;
  void arrive(Step step);
  /// Notes the time: the sample is not over before.
  void stamp();
  void add_sent(std::uint64_t bytes);
  void post_address(const std::string& address);
  [[nodiscard]] std::string address() const;

  /// The coordinator's.
  void open(Barrier barrier);
  [[nodiscard]] std::uint32_t arrived(Step step) const;
  /// Nanoseconds of the monotonic clock.
  [[nodiscard]] std::uint64_t last_stamp() const;
  [[nodiscard]] std::uint64_t sent_bytes() const;

 private:
  static constexpr std::size_t kBarriers = 5;
  static constexpr std::size_t kSteps = 6;
  struct Page {
    std::array<std::atomic<std::uint32_t>, kSteps> arrived;
    std::atomic<std::uint64_t> last_stamp;
    std::atomic<std::uint64_t> sent_bytes;
    std::array<char, 256> address;
  };
  /// A pipe without writers: a read blocks until its only writing end is closed.
  struct Pipe {
    int read = -1;
    int write = -1;
  };

  Page* page_;
  std::array<Pipe, kBarriers> barriers_{};
};

}  // namespace wherry::bench::root
