// SPDX-License-Identifier: Apache-2.0
// One output, or shard of one, and the thread that merges into it: while a batch is merged, the next gathers.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "adapters/root/handover/server/server.hpp"
#include "adapters/root/merge/TScifMerger.h"
#include "adapters/root/merge/program/options.hpp"
#include "adapters/root/merge/program/state.hpp"

namespace wherry::merge {

std::string name_of(const root::WorkerId& worker);

/// For what is done with ROOT. A trial forks: a lock of ROOT's that another thread holds would never be released there.
std::unique_lock<std::mutex> alone_if_careful(const State& state);

/// For the lists of names in a State: outputs write them from their threads.
std::mutex& name_lists();

class OutputQueue {
 public:
  /// message: prints a line; from any thread. shapes: null, or what it shares with outputs that are joined with it.
  OutputQueue(const std::string& path, const ProgramOptions& options, State& state,
              std::function<void(const std::string&)> message, std::shared_ptr<Shapes> shapes);
  OutputQueue(const OutputQueue&) = delete;
  OutputQueue& operator=(const OutputQueue&) = delete;
  ~OutputQueue();

  void push(root::PostedFile file);
  /// Nothing more comes from this worker.
  void forget(const root::WorkerId& worker);
  /// How many workers there are: a batch does not wait for more files than they can have posted.
  void set_workers(std::size_t workers) { workers_ = workers; }
  /// Merges what is queued, and ends the thread. The output is not complete yet. False if it could not be written.
  bool finish();
  // When it has finished, and with the same result:
  /// Appends another output, which is open nowhere, and removes it.
  bool join(const std::string& other);
  /// Completes the output. One that nothing was merged into is left as it is, unless that is all there was to merge.
  bool close();

 private:
  void run();
  std::vector<root::PostedFile> gather();
  bool merge(std::vector<root::PostedFile>& batch);
  void released(root::PostedFile& file, const std::string& problem);
  void finish_forgotten();
  void tell_warnings();
  void note_not_added();
  void fail();

  std::string path_;
  ProgramOptions options_;
  State& state_;
  std::function<void(const std::string&)> message_;
  std::unique_ptr<TScifMerger> merger_;
  std::atomic<std::size_t> workers_{1};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<root::PostedFile> queue_;
  std::vector<std::string> forgotten_;
  bool closing_ = false;
  std::chrono::nanoseconds last_merge_{0};
  std::uint64_t careful_;  // so many files come one at a time, each tried before
  std::set<std::string> warned_;
  bool good_ = true;
  std::thread thread_;
};

}  // namespace wherry::merge
