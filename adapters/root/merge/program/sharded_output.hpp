// SPDX-License-Identifier: Apache-2.0
// One output, written by one or several threads. Shard 0 is the output itself; the others are appended to it in the end
// (shard_names.hpp). All files of a worker go to the same shard.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "adapters/root/handover/server/server.hpp"
#include "adapters/root/merge/program/options.hpp"
#include "adapters/root/merge/program/output_queue.hpp"
#include "adapters/root/merge/program/state.hpp"

namespace wherry::merge {

class ShardedOutput {
 public:
  /// Continues the shards that exist. If the output cannot be begun, prints the reason and sets state.failed.
  /// @param message  prints a line; called by any thread
  ShardedOutput(const std::string& path, const ProgramOptions& options, State& state,
                std::function<void(const std::string&)> message);

  /// Returns whether an earlier run had begun to complete the output. Then only `close` may be called.
  [[nodiscard]] bool ended() const { return ended_; }
  /// Returns whether all workers of that run had finished.
  [[nodiscard]] bool ended_whole() const { return ended_whole_; }
  void push(root::PostedFile file);
  void set_workers(std::size_t workers);
  /// Tells that no more files come from this worker.
  void forget(const root::WorkerId& worker);
  /// Merges the queued files, joins the shards, and completes the output. False if it could not be written; the shards
  /// that were not joined are kept.
  bool close();

 private:
  void find_homes(unsigned shard);
  OutputQueue& queue(unsigned shard);
  OutputQueue& home_of(const root::WorkerId& worker);
  bool join(unsigned shard);
  void tell_what_stays();

  std::string path_;
  const ProgramOptions& options_;
  State& state_;
  std::function<void(const std::string&)> message_;
  bool ended_ = false;
  bool ended_whole_ = false;
  std::shared_ptr<Shapes> shapes_;  // null if there is only one shard
  std::map<std::string, unsigned> homes_;
  unsigned next_home_ = 0;
  std::size_t workers_ = 0;
  std::map<unsigned, std::unique_ptr<OutputQueue>> queues_;
};

}  // namespace wherry::merge
