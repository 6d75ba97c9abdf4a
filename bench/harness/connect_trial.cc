// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/connect_trial.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/child_process.hpp"
#include "base/open_descriptors.hpp"
#include "bench/harness/descriptor_limit.hpp"
#include "bench/harness/memory_use.hpp"
#include "bench/harness/process_group.hpp"
#include "bench/harness/sample_memory.hpp"

namespace wherry::bench {
namespace {

constexpr std::chrono::seconds kTrialTimeout{60};
constexpr std::size_t kMostSteps = 16;

/// What a process has at some moment.
struct Holdings {
  double memory = 0;
  double kernel = 0;
  double descriptors = 0;
};

/// Shared by the two processes.
struct Trial {
  std::atomic<std::uint32_t> accepted = 0;
  double listen_ns = 0;
  std::array<std::int64_t, kMostConnections + 1> started;    // W: the connector
  std::array<std::int64_t, kMostConnections + 1> connected;  // W: the connector
  std::array<std::int64_t, kMostConnections + 1> taken;      // W: the acceptor
  std::array<std::array<Holdings, kMostSteps + 1>, 2> held;  // By rank and step. W: that rank
  std::array<StartBarrier, 2 * (kMostSteps + 1)> barriers;
};

double slabs() {
  std::ifstream lines("/proc/meminfo");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Slab:")) return std::stod(line.substr(5)) * 1024;
  }
  return 0;
}

class Side {
 public:
  Side(System& system, Trial& trial, SampleMemory& shared, std::uint32_t rank)
      : connector_(system.connector()), trial_(trial), shared_(shared), rank_(rank) {}

  void take_part(std::span<const std::uint32_t> numbers, const std::string& name) {
    raise_descriptor_limit();
    if (rank_ == 0) {
      const std::int64_t start = steady_ns();
      const std::string where = connector_->listen(name);
      trial_.listen_ns = static_cast<double>(steady_ns() - start);
      shared_.post(0, where);
    } else {
      where_ = shared_.read(0);
    }
    // What a process needs once is no cost of a connection: the first one does not count.
    reach(1, 0);
    for (std::size_t step = 0; step < numbers.size(); ++step) reach(numbers[step] + 1, step + 1);
  }

 private:
  void reach(std::uint32_t number, std::size_t step) {
    for (; have_ < number; ++have_) rank_ == 0 ? accept() : connect();
    trial_.barriers[2 * step].pass(2);
    if (step == 0) (void)holdings();  // The first look needs memory of its own.
    trial_.held[rank_][step] = holdings();
    trial_.barriers[2 * step + 1].pass(2);
  }

  [[nodiscard]] Holdings holdings() const {
    return {.memory = static_cast<double>(proportional_data()),
            .kernel = rank_ == 0 ? slabs() : 0,
            .descriptors = static_cast<double>(open_descriptors())};
  }

  void accept() {
    connector_->accept();
    trial_.taken[have_] = steady_ns();
    trial_.accepted = have_ + 1;
  }

  // The next attempt begins when the other side sleeps again.
  void connect() {
    trial_.started[have_] = steady_ns();
    connector_->connect(where_);
    trial_.connected[have_] = steady_ns();
    do {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    } while (trial_.accepted <= have_);
  }

  std::unique_ptr<Connector> connector_;
  Trial& trial_;
  SampleMemory& shared_;
  std::uint32_t rank_;
  std::string where_;
  std::uint32_t have_ = 0;
};

ConnectTrial results(const Trial& trial, std::span<const std::uint32_t> numbers) {
  ConnectTrial result{.listen_ns = trial.listen_ns, .steps = {}};
  const auto gained = [&](std::size_t step, double Holdings::* what) {
    double sum = 0;
    for (const auto& held : trial.held) sum += held[step].*what - held[0].*what;
    return sum;
  };
  std::uint32_t at = 1;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    ConnectStep step{.connections = numbers[i],
                     .connect_ns = {},
                     .memory_bytes = gained(i + 1, &Holdings::memory),
                     .kernel_bytes = gained(i + 1, &Holdings::kernel),
                     .descriptors = gained(i + 1, &Holdings::descriptors)};
    for (; at <= numbers[i]; ++at) {
      const std::int64_t end = std::max(trial.connected[at], trial.taken[at]);
      step.connect_ns.push_back(static_cast<double>(end - trial.started[at]));
    }
    result.steps.push_back(std::move(step));
  }
  return result;
}

}  // namespace

ConnectTrial try_connections(System& system, std::span<const std::uint32_t> numbers) {
  static int number = 0;
  const std::string name = fmt::format("wherry-bench-connect-{}-{}", ::getpid(), ++number);
  const bool ascending = std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) == numbers.end();
  if (numbers.empty() || numbers.size() > kMostSteps || !ascending || numbers.back() > kMostConnections) {
    throw std::invalid_argument(
        fmt::format("give up to {} numbers of connections, ascending, up to {}", kMostSteps, kMostConnections));
  }
  const SharedValue<Trial> trial;
  SampleMemory shared(1, 0);
  ProcessGroup group;
  for (const std::uint32_t rank : {0U, 1U}) {
    group.start(rank == 0 ? "listener" : "connector", [&, rank] {
      try {
        Side(system, *trial, shared, rank).take_part(numbers, name);
        return 0;
      } catch (const std::exception& error) {
        shared.report(rank).set_error(error.what());
        return 1;
      }
    });
  }
  const std::string failure = group.wait(kTrialTimeout);
  if (failure.empty()) return results(*trial, numbers);
  for (const std::uint32_t rank : {0U, 1U}) {
    if (*shared.report(rank).error != '\0') throw std::runtime_error(shared.report(rank).error);
  }
  throw std::runtime_error(failure);
}

}  // namespace wherry::bench
