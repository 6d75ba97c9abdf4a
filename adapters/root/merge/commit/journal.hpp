// SPDX-License-Identifier: Apache-2.0
// The side file of an output that is being merged: which commits were made, and how to complete the last one.
//
// An output changes in two steps. First everything new is written where no older commit looks; then the few bytes that
// make it the current state (the file's header, the directories' headers) are overwritten. Between them the journal
// gets one record with those bytes. So a process that is killed leaves either no complete record, and the output is at
// the commit before; or a complete one, and writing its bytes again completes the commit, however often it is done.
//
// An output can also be written anew, into a file of another name: a record then says that this file is the output, and
// a process that finds it as the last one renames the file if that was not done.
//
// The record also says which files of which workers the commit holds: what makes merging exactly once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::merge {

/// Bytes that are overwritten in place.
struct Patch {
  std::uint64_t offset = 0;
  std::vector<std::byte> bytes;
};

/// The last file that is in the output, per worker.
using Sequences = std::map<std::string, std::uint64_t>;

struct Commit {
  std::uint64_t end = 0;  ///< bytes of the output that belong to it
  std::vector<Patch> patches;
  Sequences sequences;  ///< of the workers that this commit has files of
  bool anew = false;    ///< the output is the file with the hidden name, if there is one
};

/// Errors are thrown as std::system_error. One thread. While one exists no other process can recover its output or
/// begin another journal of it.
class Journal {
 public:
  /// Where the journal of an output is.
  static std::string path_of(const std::string& output) { return output + ".journal"; }
  /// The name of an output that is begun, or written anew, before it has its own: as long, in the same directory.
  static std::string hidden(std::string output);

  /// Completes the last commit of an output after its process was killed: afterwards the output is a valid ROOT file
  /// that ends where the commit ends. Empty without a journal, or without one complete record in it. An error if
  /// another process has the journal.
  static std::optional<Sequences> recover(const std::string& output);

  /// Whether another process has the journal of this output.
  static bool is_in_use(const std::string& output);

  /// Begins a new journal, which replaces an older one. `sequences` is what the output holds already, at `first`.
  Journal(const std::string& output, const Commit& first, bool durable);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();

  /// The commit is made as soon as this returns, though its patches are not in the output yet.
  void append(const Commit& commit);
  /// Puts the file with the hidden name, of which `end` bytes are all, in the output's place.
  void replace_output(std::uint64_t end);
  /// The output is complete: nothing is left to recover.
  void remove();

 private:
  void write_record(const Commit& commit);
  void rewrite(const Commit& commit);

  std::string output_;
  std::string path_;
  bool durable_;
  int descriptor_ = -1;
  std::size_t bytes_ = 0;
  Sequences sequences_;
};

}  // namespace wherry::merge
