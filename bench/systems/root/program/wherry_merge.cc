// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "adapters/root/merge/program/serving.hpp"
#include "bench/systems/root/program/output.hpp"
#include "bench/systems/root/program/wherry.hpp"

namespace wherry::bench::root {
namespace {

using wherry::merge::ProgramOptions;
using wherry::merge::State;

/// A listener's name in /proc/net/unix ends so.
bool listened_to(int port) {
  const std::string end = fmt::format("/0:{}", port);
  std::ifstream lines("/proc/net/unix");
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(end)) return true;
  }
  return false;
}

/// wherry-merge with its default options, in this process: the clock stops when the output is closed, not when a
/// program has ended.
class MergeServer final : public Server {
 public:
  explicit MergeServer(const Task& task) : task_(task) {
    options_.listen = address();
    options_.output = task.output;
    options_.workers = task.job.workers;
    options_.quiet = true;
    serving_ = std::thread([this] { run(); });
    while (!listened_to(port_) && !ended_) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  MergeServer(const MergeServer&) = delete;
  MergeServer& operator=(const MergeServer&) = delete;
  ~MergeServer() override {
    if (serving_.joinable()) serving_.join();
  }

  [[nodiscard]] std::string address() const override { return fmt::format("wherry://0:{}", port_); }

  void serve() override {
    serving_.join();
    if (!good_ || state_.refused > 0 || state_.lost > 0) throw std::runtime_error("wherry-merge has not merged all");
    task_.shared.add_sent(state_.bytes);
    task_.shared.stamp();
    task_.shared.arrive(Step::done);
    check_output(task_);
  }

 private:
  void run() {
    try {
      good_ = wherry::merge::serve(options_, state_) == 0;
    } catch (const std::exception& error) {
      fmt::print(stderr, "wherry-merge: {}\n", error.what());
    }
    ended_ = true;
  }

  const Task& task_;
  int port_ = 1000 + ::getpid() % 50'000;
  ProgramOptions options_;
  State state_;
  std::atomic<bool> ended_ = false;
  bool good_ = false;
  std::thread serving_;
};

}  // namespace

std::unique_ptr<Server> make_merge_server(const Task& task) { return std::make_unique<MergeServer>(task); }

}  // namespace wherry::bench::root
