// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/program/sharded_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "adapters/root/merge/commit/journal.hpp"
#include "adapters/root/merge/commit/shard_names.hpp"
#include "base/readable.hpp"

namespace wherry::merge {

ShardedOutput::ShardedOutput(const std::string& path, const ProgramOptions& options, State& state,
                             std::function<void(const std::string&)> message)
    : path_(path), options_(options), state_(state), message_(std::move(message)) {
  const std::vector<unsigned> others = shards_beside(path);
  if (options.shards > 1 || !others.empty()) {
    const auto alone = alone_if_careful(state);
    shapes_ = TScifMerger::MakeShapes();
  }
  try {
    find_homes(0);
    for (const unsigned shard : others) find_homes(shard);
  } catch (const std::exception& error) {
    state_.failed = true;
    message_(error.what());
    return;
  }
  queue(0);
  // Opened before the first file comes, so that the shapes of all shards are known.
  if (!ended_) {
    for (const unsigned shard : others) queue(shard);
  }
}

void ShardedOutput::find_homes(unsigned shard) {
  const auto sequences = Journal::recover(shard_path(path_, shard));
  if (!sequences) return;
  if (const auto ending = sequences->find(kEnding); ending != sequences->end()) {
    ended_ = true;
    ended_whole_ = ending->second == kEndingWhole;
  }
  for (const auto& [worker, last] : *sequences) homes_.emplace(worker, shard);
}

OutputQueue& ShardedOutput::queue(unsigned shard) {
  auto& queue = queues_[shard];
  if (!queue) {
    queue = std::make_unique<OutputQueue>(shard_path(path_, shard), options_, state_, message_, shapes_);
    set_workers(workers_);
  }
  return *queue;
}

// Assigns new workers to the shards in turn. So the numbers of workers differ by at most one, unless those that have
// left were all of one shard.
OutputQueue& ShardedOutput::home_of(const root::WorkerId& worker) {
  const auto [home, fresh] = homes_.try_emplace(name_of(worker), next_home_);
  if (fresh) next_home_ = (next_home_ + 1) % options_.shards;
  return queue(home->second);
}

void ShardedOutput::push(root::PostedFile file) {
  OutputQueue& queue = home_of(file.worker().id);
  queue.push(std::move(file));
}

void ShardedOutput::set_workers(std::size_t workers) {
  workers_ = workers;
  const std::size_t shards = std::max<std::size_t>(options_.shards, queues_.size());
  for (auto& [shard, queue] : queues_) queue->set_workers((workers + shards - 1) / shards);
}

void ShardedOutput::forget(const root::WorkerId& worker) {
  const auto home = homes_.find(name_of(worker));
  if (home != homes_.end()) queue(home->second).forget(worker);
}

bool ShardedOutput::close() {
  bool good = !queues_.empty();
  for (auto& [shard, queue] : queues_) good = queue->finish() && good;
  // Closes the other shards, because joining opens their files.
  queues_.erase(queues_.upper_bound(0), queues_.end());
  for (const unsigned shard : shards_beside(path_)) good = good && join(shard);
  good = good && queue(0).close();
  if (!good) tell_what_stays();
  return good;
}

bool ShardedOutput::join(unsigned shard) {
  const std::string path = shard_path(path_, shard);
  std::error_code none;
  const auto bytes = std::filesystem::file_size(path, none);
  if (!options_.quiet) message_(fmt::format("joining {}, {}", path, human_bytes(none ? 0 : bytes)));
  const auto begin = std::chrono::steady_clock::now();
  if (!queue(0).join(path)) return false;
  const auto time = std::chrono::steady_clock::now() - begin;
  ++state_.joined;
  state_.joined_bytes += none ? 0 : bytes;
  state_.joining_time +=
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
  return true;
}

void ShardedOutput::tell_what_stays() {
  std::string list;
  for (const unsigned shard : shards_beside(path_)) list += (list.empty() ? "" : ", ") + shard_path(path_, shard);
  if (list.empty()) return;
  message_(
      fmt::format("{} is not complete: the rest is in {}, which can be read, too. Remove the cause and run the same"
                  " command again to continue with all of them",
                  path_, list));
}

}  // namespace wherry::merge
