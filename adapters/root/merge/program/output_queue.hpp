// SPDX-License-Identifier: Apache-2.0
// One output, or one shard of it, with the thread that merges into it. While a batch is merged, the next one gathers.
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

/// Returns the worker's id in hexadecimal.
std::string name_of(const root::WorkerId& worker);

/// Locks ROOT for one output if state.careful is set, because trials fork: in the forked process, a lock of ROOT's that
/// another thread holds would never be released. Else returns no lock.
std::unique_lock<std::mutex> alone_if_careful(const State& state);

/// Guards the name lists of a State, which the threads of all outputs write.
std::mutex& name_lists();

class OutputQueue {
 public:
  /// @param message  prints a line; called by any thread
  /// @param shapes   null, or shared with the outputs that are joined with this one
  OutputQueue(const std::string& path, const ProgramOptions& options, State& state,
              std::function<void(const std::string&)> message, std::shared_ptr<Shapes> shapes);
  OutputQueue(const OutputQueue&) = delete;
  OutputQueue& operator=(const OutputQueue&) = delete;
  ~OutputQueue();

  void push(root::PostedFile file);
  /// Tells that no more files come from this worker.
  void forget(const root::WorkerId& worker);
  /// Sets the number of workers. A batch does not wait for more files than there are workers.
  void set_workers(std::size_t workers) { workers_ = workers; }
  /// Merges the queued files and ends the thread. Does not complete the output. False if it could not be written.
  bool finish();
  // The following are called after finish(). False if the output could not be written, now or before.
  /// Appends another output, which must not be open anywhere, and removes it.
  bool join(const std::string& other);
  /// Completes the output. An output that was never begun is left as it is, except a single output of a whole job.
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
  std::uint64_t careful_;  // this many further files are merged one at a time, each after a trial
  std::set<std::string> warned_;
  bool good_ = true;
  std::thread thread_;
};

}  // namespace wherry::merge
