// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/root/program/coordinator.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <TROOT.h>

#include "base/clock.hpp"
#include "bench/harness/programs/usage.hpp"
#include "bench/harness/usage.hpp"
#include "bench/systems/root/program/sample_memory.hpp"
#include "bench/systems/root/program/task.hpp"
#include "bench/systems/root/program/worker_group.hpp"

namespace wherry::bench::root {
namespace {

namespace fs = std::filesystem;

/// A folder for one sample.
class Folder {
 public:
  explicit Folder(const std::string& above) : path_(fs::path(above) / "sample") { fs::create_directories(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string path() const { return path_; }

 private:
  fs::path path_;
};

void serve(const Task& task) {
  task.shared.enter();
  const std::unique_ptr<Server> server = make_server(task);
  task.shared.post_address(server->address());
  server->serve();
  task.shared.pass(Barrier::end);
}

/// What one worker does, from its being connected until it has left.
void work(const Task& task, Worker& worker) {
  SampleMemory& shared = task.shared;
  const auto one_file = [&worker] {
    worker.produce();
    worker.hand_over();
  };
  if (task.rehearses()) one_file();
  shared.arrive(Step::ready);
  shared.pass(Barrier::start);
  for (std::uint32_t i = 0; i < task.job.files; ++i) one_file();
  if (task.job.figure == Figure::merge) worker.leave();
  shared.arrive(Step::sent);
  if (task.job.figure == Figure::fill) {
    shared.pass(Barrier::memory);
    worker.produce();
    shared.arrive(Step::full);
    shared.pass(Barrier::leave);
    worker.hand_over();
  }
  if (task.job.figure != Figure::merge) {
    shared.pass(Barrier::leave);
    worker.leave();
  }
}

/// All workers of a process, each in a thread if there are several.
void work_in_one_process(const Task& task, std::uint32_t first, std::uint32_t count) {
  task.shared.enter();
  if (task.job.threads) ROOT::EnableThreadSafety();
  const std::unique_ptr<Workshop> workshop = make_workshop(task);
  const auto one = [&](std::uint32_t number) {
    try {
      work(task, *workshop->hire(number));
    } catch (const std::exception& error) {
      // One thread's failure ends them all: the others might wait for it forever.
      fmt::print(stderr, "worker {}: {}\n", number, error.what());
      std::_Exit(1);
    }
  };
  std::vector<std::thread> others;
  for (std::uint32_t i = 1; i < count; ++i) others.emplace_back(one, first + i);
  one(first);
  for (std::thread& other : others) other.join();
  workshop->close();
  task.shared.stamp();
  task.shared.arrive(Step::closed);
  task.shared.pass(Barrier::end);
}

struct Processes {
  std::vector<pid_t> server{};
  std::vector<pid_t> workers{};
};

Processes start_all(const Task& task, WorkerGroup& group) {
  Processes processes;
  if (has_server(task.job)) {
    processes.server.push_back(group.start("server", [&task] { serve(task); }));
    group.wait_until([&task] { return task.shared.arrived(Step::listening) > 0; });
  }
  const std::uint32_t workers = task.job.workers;
  const std::uint32_t count = task.job.threads ? 1 : workers;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string name = task.job.threads ? std::string("workers") : fmt::format("worker {}", i);
    processes.workers.push_back(group.start(name, [&task, i, each = workers / count] {  //
      work_in_one_process(task, i, each);
    }));
  }
  return processes;
}

/// Lets the sample run and measures it.
Finding conduct(const Task& task, WorkerGroup& group, const Processes& processes) {
  SampleMemory& shared = task.shared;
  const auto all = [&](Step step, std::size_t count) {
    group.wait_until([&shared, step, count] { return shared.arrived(step) >= count; });
  };
  const auto cpu = [&processes] {
    return std::pair(cpu_seconds_of(processes.server), cpu_seconds_of(processes.workers));
  };
  all(Step::ready, task.job.workers);
  const auto cpu_before = cpu();
  const std::uint64_t start = monotonic_ns();
  shared.open(Barrier::start);
  all(Step::sent, task.job.workers);
  shared.open(Barrier::merge);
  if (task.job.figure == Figure::merge) all(Step::closed, processes.workers.size());
  all(Step::done, processes.server.size());
  const auto cpu_after = cpu();
  Finding finding{.seconds = static_cast<double>(shared.last_stamp() - start) / 1e9,
                  .server_cpu_seconds = cpu_after.first - cpu_before.first,
                  .worker_cpu_seconds = cpu_after.second - cpu_before.second,
                  .useful_bytes = std::uint64_t{task.job.workers} * task.job.files * task.image.bytes.size()};
  // That of all files, of which the rehearsals have not been timed.
  finding.wire_bytes = shared.sent_bytes() * task.job.workers * task.job.files / task.expected();
  if (task.job.figure == Figure::fill) {
    shared.open(Barrier::memory);
    all(Step::full, task.job.workers);
    finding.memory_bytes = memory_of(processes.workers) / task.job.workers;
  }
  shared.open(Barrier::leave);
  if (task.job.figure != Figure::merge) all(Step::closed, processes.workers.size());
  shared.open(Barrier::end);
  group.wait();
  return finding;
}

}  // namespace

Coordinator::Coordinator(std::string folder) : folder_(std::move(folder)) { warm_up(folder_); }

const Image& Coordinator::image(Tree tree, std::uint64_t size) {
  const auto key = std::pair(tree, size);
  const auto found = images_.find(key);
  return found != images_.end() ? found->second : images_.emplace(key, make_image(tree, size)).first->second;
}

Finding Coordinator::run(const Job& job) {
  const Folder folder(folder_);
  SampleMemory shared;
  const Task task{.job = job,
                  .image = image(job.tree, job.size),
                  .shared = shared,
                  .folder = folder.path(),
                  .output = folder.path() + "/out.root"};
  WorkerGroup group;
  const double reaped = usage_now(RUSAGE_CHILDREN).cpu;
  const Processes processes = start_all(task, group);
  Finding finding = conduct(task, group, processes);
  finding.reaped_cpu_seconds = usage_now(RUSAGE_CHILDREN).cpu - reaped;
  return finding;
}

}  // namespace wherry::bench::root
