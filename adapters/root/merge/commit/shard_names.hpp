// SPDX-License-Identifier: Apache-2.0
// The files of an output that several threads write, and how a restart uses them.
//
//   OUT                shard 0, to which the others are appended in the end
//   OUT.shard-1.root   the others, from 1 on: each is a ROOT file like OUT, and ends with its last batch
//   *.journal           beside each of them: which files of which workers it contains (journal.hpp)
//
// All files of a worker are in one shard, in order. The journals determine which shard that is; a worker that is in no
// journal may use any. Hence a restart may use a different number of shards. Existing shards beyond that number keep
// their workers.
//
// The end of a run:
//   1. OUT's journal gets a note, kEnding: no worker will hand over another file.
//   2. Each shard is appended to OUT with one commit, which takes over the shard's sequences. Then it is removed.
//   3. OUT is completed. Without shards, step 1 is part of this.
// A run that finds the note continues with the remaining steps. If OUT's journal already has the files of a shard's
// workers, that shard was appended and only has to be removed; else no part of it is in OUT.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace wherry::merge {

constexpr unsigned kMostShards = 64;

/// The name of the note in an output's journal, in the place of a worker's name.
constexpr const char* kEnding = "\x01joining";
// Its sequence number: whether all workers had finished.
constexpr std::uint64_t kEndingWhole = 1;
constexpr std::uint64_t kEndingIncomplete = 2;

/// Returns the path of a shard; 0 is the output itself.
std::string shard_path(const std::string& output, unsigned shard);

/// Returns the output to which a shard of this name belongs; empty if it is not the name of a shard.
std::optional<std::string> output_of_shard(const std::string& path);

/// Returns the incomplete outputs in a directory: those with a journal, a shard, or a shard's journal.
std::set<std::string> unfinished_outputs(const std::string& directory);

/// Returns the numbers, from 1 on and increasing, of the shards of which a file or a journal exists.
std::vector<unsigned> shards_beside(const std::string& output);

}  // namespace wherry::merge
