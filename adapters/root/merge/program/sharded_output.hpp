// SPDX-License-Identifier: Apache-2.0
// One output, written by one thread or by several: shard 0 is the output itself, the others are appended to it in the
// end (shard_names.hpp). Each worker's files go to one shard.
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
  /// Goes on with the shards that are there. An output that cannot be begun is a message, and state.failed.
  /// message: prints a line; from any thread.
  ShardedOutput(const std::string& path, const ProgramOptions& options, State& state,
                std::function<void(const std::string&)> message);

  /// Whether it is one that was interrupted when its workers were done: there is only `close` left to do.
  [[nodiscard]] bool ended() const { return ended_; }
  /// Whether all of them had finished.
  [[nodiscard]] bool ended_whole() const { return ended_whole_; }
  void push(root::PostedFile file);
  void set_workers(std::size_t workers);
  /// Nothing more comes from this worker.
  void forget(const root::WorkerId& worker);
  /// Merges what is queued, joins the shards and completes the output. False if it could not be written: the shards
  /// that are not in it stay.
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
  std::shared_ptr<Shapes> shapes_;  // null as long as there is one shard
  std::map<std::string, unsigned> homes_;
  unsigned next_home_ = 0;
  std::size_t workers_ = 0;
  std::map<unsigned, std::unique_ptr<OutputQueue>> queues_;
};

}  // namespace wherry::merge
