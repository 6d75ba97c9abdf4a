// SPDX-License-Identifier: Apache-2.0
// What a system must provide to take part: a server, and workers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/systems/root/job.hpp"
#include "bench/systems/root/program/image.hpp"
#include "bench/systems/root/program/sample_memory.hpp"

namespace wherry::bench::root {

/// A job with what it needs. Lives as long as the sample; every process has its copy.
struct Task {
  const Job& job;
  const Image& image;  ///< one file as it is when it is ready
  SampleMemory& shared;
  std::string folder;  ///< for files of the sample's own; gone afterwards
  std::string output;  ///< where the merged file shall be

  /// Whether each worker hands over one file before the clock starts: connections, buffers and pages are there then.
  [[nodiscard]] bool rehearses() const { return job.figure != Figure::merge; }
  /// Files that the server sees before the clock stops.
  [[nodiscard]] std::uint64_t expected() const {
    return std::uint64_t{job.workers} * (job.files + (rehearses() ? 1 : 0));
  }
  /// Whether workers fill trees, or hand over the image.
  [[nodiscard]] bool live() const { return job.figure != Figure::transfer && job.tree == Tree::numbers; }
};

/// In a process of its own.
class Server {
 public:
  Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  virtual ~Server() = default;

  [[nodiscard]] virtual std::string address() const { return {}; }
  /// Until all workers have left. Stamps the shared memory and arrives (Step::done) when what the figure counts is
  /// done.
  virtual void serve() = 0;
};

/// One worker, in a process or thread of its own.
class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  virtual ~Worker() = default;

  /// The next file, up to the moment when it is full.
  virtual void produce() {}
  virtual void hand_over() = 0;
  /// Nothing more will come.
  virtual void leave() {}
};

/// What the workers of one process have in common.
class Workshop {
 public:
  Workshop() = default;
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;
  virtual ~Workshop() = default;

  /// Called in the worker's own thread.
  virtual std::unique_ptr<Worker> hire(std::uint32_t number) = 0;
  /// When all of them have left. Closes the output if that is made here.
  virtual void close() {}
};

/// False: the workers make the output among themselves.
bool has_server(const Job& job);

/// Both throw std::invalid_argument where the system has no such figure.
std::unique_ptr<Server> make_server(const Task& task);
std::unique_ptr<Workshop> make_workshop(const Task& task);

/// Uses everything of ROOT once that takes long at its first use. Files come and go in that folder.
void warm_up(const std::string& folder);

}  // namespace wherry::bench::root
