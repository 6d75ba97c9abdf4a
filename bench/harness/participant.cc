// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/participant.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "base/clock.hpp"
#include "bench/harness/descriptor_limit.hpp"
#include "bench/harness/memory_use.hpp"
#include "bench/harness/touch.hpp"
#include "bench/harness/usage.hpp"

namespace wherry::bench {
namespace {

/// The pause before an answer, for the other process to have gone to sleep (Question::asleep): longer than any system
/// spins or yields before it sleeps.
constexpr std::chrono::milliseconds kUntilAsleep{1};

class Participant {
 public:
  Participant(const Sample& sample, SampleMemory& shared, std::uint32_t rank, Link& link)
      : sample_(sample), shared_(shared), rank_(rank), link_(link) {}

  void warm_up(bool in_place) {
    Report& report = shared_.report(rank_);
    report.lap = link_.lap();
    report.warm_up = warm_up_messages(sample_, in_place);
    // From many a receiver takes each message in the way that its sender chose: all of them would have to learn.
    if (sample_.senders == 1) report.warm_up = std::max(report.warm_up, link_.learns_within());
    if (link_.opens_alone()) shared_.open();
    const std::uint64_t lap = link_.opens_alone() ? shared_.lap() : 0;
    go_round(lap);
    const std::uint64_t messages = shared_.warm_up();
    if (sample_.question != Question::stream) {
      exchange(messages, {});
    } else if (messages > lap) {
      stream(messages - lap);
    }
    // With many senders a system's own first message to connect may be among these, in place of one of ours.
    sum_ = 0;
  }

  void measure() {
    if (watches_kernel()) kernel_before_ = tcp_memory();
    const Usage before = usage_now(RUSAGE_SELF);
    sample_.question == Question::stream ? stream(sample_.messages)
                                         : exchange(sample_.messages, shared_.latencies(rank_));
    Report& report = shared_.report(rank_);
    report.part_ns = static_cast<std::int64_t>(wherry::monotonic_ns()) - shared_.started_at();
    const Usage used = usage_now(RUSAGE_SELF) - before;
    report.cpu_seconds = used.cpu;
    report.context_switches = used.switches;
    report.sum = sum_;
    report.complete = true;
  }

  /// After the barrier that ends the sample, so that no figure includes it.
  void measure_memory() {
    if (sample_.senders == 1) return;
    std::uint64_t bytes = proportional_memory();
    if (kernel_half_way_ > kernel_before_) bytes += kernel_half_way_ - kernel_before_;
    shared_.report(rank_).memory_bytes = bytes;
  }

 private:
  [[nodiscard]] bool watches_kernel() const { return rank_ == 0 && sample_.senders > 1; }

  /// One lap of the memory that each end sends through, as fast as messages go: to and fro a ring takes long to fill.
  void go_round(std::uint64_t lap) {
    if (lap == 0) return;
    if (sample_.question == Question::stream) {
      stream(lap);
      shared_.report(rank_).lap_ns = static_cast<std::int64_t>(wherry::monotonic_ns()) - shared_.opened_at();
      return;
    }
    for (const bool sends : {rank_ != 0, rank_ == 0}) {
      for (std::uint64_t i = 0; i < lap; ++i) sends ? send() : receive();
      link_.finish();
    }
  }

  void stream(std::uint64_t messages) {
    if (rank_ == 0) {
      const std::uint64_t all = messages * sample_.senders;
      for (std::uint64_t i = 0; i < all; ++i) {
        receive();
        // While all are still busy: what the kernel buffers is gone at the end.
        if (i == all / 2 && watches_kernel()) kernel_half_way_ = tcp_memory();
      }
    } else {
      for (std::uint64_t i = 0; i < messages; ++i) send();
      link_.finish();
    }
  }

  /// Throws a message to and fro. With `latencies` empty nothing is noted.
  void exchange(std::uint64_t rounds, std::span<double> latencies) {
    if (sample_.question == Question::asleep) {
      exchange_asleep(rounds, latencies);
    } else if (rank_ == 0) {
      for (std::uint64_t i = 0; i < rounds; ++i) {
        receive();
        send();
      }
    } else {
      std::uint64_t before = wherry::monotonic_ns();
      for (std::uint64_t i = 0; i < rounds; ++i) {
        send();
        receive();
        const std::uint64_t now = wherry::monotonic_ns();
        if (!latencies.empty()) latencies[i] = static_cast<double>(now - before) / 2;
        before = now;
      }
    }
    link_.finish();
  }

  /// Rank 1 notes each round trip, rank 0 how long it kept the message: hosts share no clock.
  void exchange_asleep(std::uint64_t rounds, std::span<double> latencies) {
    for (std::uint64_t i = 0; i < rounds; ++i) {
      if (rank_ == 0) {
        receive();
        const std::uint64_t received = wherry::monotonic_ns();
        const std::uint64_t sent = send_after_pause();
        if (!latencies.empty()) latencies[i] = static_cast<double>(sent - received);
      } else {
        const std::uint64_t sent = send_after_pause();
        receive();
        if (!latencies.empty()) latencies[i] = static_cast<double>(wherry::monotonic_ns() - sent);
      }
    }
  }

  /// Returns when it began to send.
  std::uint64_t send_after_pause() {
    std::this_thread::sleep_for(kUntilAsleep);
    const std::uint64_t now = wherry::monotonic_ns();
    send();
    return now;
  }

  void send() {
    const std::span<std::byte> message = link_.prepare();
    if (message.size() != sample_.size) throw std::runtime_error("prepared a message of another size");
    if (sample_.touched) {
      const std::uint64_t word = pattern(rank_, sent_++);
      write_all(message, word);
      sum_ += sum_of(message.size(), word);
    }
    link_.send();
  }

  void receive() {
    const std::span<const std::byte> message = link_.receive();
    if (message.size() != sample_.size) throw std::runtime_error("received a message of another size");
    if (sample_.touched) {
      const std::uint64_t sum = sum_all(message);
      // Both ends of an exchange send and receive: what one wrote and the other read cancels out.
      sum_ = sample_.question == Question::stream ? sum_ + sum : sum_ - sum;
    }
  }

  const Sample& sample_;
  SampleMemory& shared_;
  std::uint32_t rank_;
  Link& link_;
  std::uint64_t sent_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t kernel_before_ = 0;
  std::uint64_t kernel_half_way_ = 0;
};

}  // namespace

void pin(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<unsigned>(core), &cores);
  if (::sched_setaffinity(0, sizeof cores, &cores) != 0) {
    throw std::system_error(errno, std::system_category(), fmt::format("cannot run on core {}", core));
  }
}

void pin(const Sample& sample, std::uint32_t rank) {
  if (sample.senders > 1 || sample.cores.empty()) return;
  pin(sample.cores[rank % sample.cores.size()]);
}

void take_part(LinkSystem& system, const Sample& sample, SampleMemory& shared, std::uint32_t rank,
               const std::string& name) {
  if (system.pinned()) pin(sample, rank);
  if (sample.idle != 0) raise_descriptor_limit();
  const std::unique_ptr<Link> link = system.open(Place{sample, rank, shared, name});
  Participant participant(sample, shared, rank, *link);
  participant.warm_up(system.in_place());
  shared.start();
  participant.measure();
  shared.stop();
  participant.measure_memory();
  shared.leave();
}

}  // namespace wherry::bench
