// SPDX-License-Identifier: Apache-2.0
// The files of an output that several threads write, and what each restart makes of them.
//
//   OUT                shard 0, which the others are appended to in the end
//   OUT.shard-1.root   the others, from 1 on: each a ROOT file as OUT is, which ends with its last batch
//   *.journal           beside each of them: which files of which workers it holds (journal.hpp)
//
// A worker's files are all in one shard, in their order. Which one that is say the journals, not the number of shards:
// a worker that is in none of them may go to any. So a restart with any other number goes on, too; shards beyond it
// stay those of their workers.
//
// The end begins with a note in OUT's journal, kEnding: no worker will hand over any more. Then each shard is
// appended to OUT with one commit, which says of its workers what its journal said, and is removed after that. At last
// OUT is completed; without shards the note comes with that. A run that finds the note goes on with what is left. A
// shard that OUT knows the workers' files of is in OUT already, and only to be removed; else nothing of it is.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace wherry::merge {

constexpr unsigned kMostShards = 64;

/// In an output's journal, beside the workers.
constexpr const char* kEnding = "\x01joining";
// Its number says whether all workers had finished then.
constexpr std::uint64_t kEndingWhole = 1;
constexpr std::uint64_t kEndingIncomplete = 2;

/// 0 is the output itself.
std::string shard_path(const std::string& output, unsigned shard);

/// The output that a file of this name is a shard of, if it is one's.
std::optional<std::string> output_of_shard(const std::string& path);

/// The outputs in a directory of which a journal is there, their own or a shard's: they are not complete.
std::set<std::string> unfinished_outputs(const std::string& directory);

/// The shards from 1 on of which a file or a journal is there; rising.
std::vector<unsigned> shards_beside(const std::string& output);

}  // namespace wherry::merge
