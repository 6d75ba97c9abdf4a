// SPDX-License-Identifier: Apache-2.0
// The journal of an output that is being merged. It records the commits, and how to complete the last one.
//
// A commit changes the output in three steps:
//   1. All new data is written to places that no earlier commit refers to.
//   2. One record is appended to the journal. It contains the few bytes that make the new data current: the header of
//      the file and those of its directories. With the record the commit is made.
//   3. These bytes are overwritten in place.
// If the process is killed before the record is complete, the output is at the previous commit. If it is killed later,
// recovery writes the bytes of the record again, which may be repeated any number of times.
//
// An output can also be rewritten as a new file with the hidden name. A record then tells that this file is the output.
// A process that finds it as the last record renames the file if that was not done yet.
//
// A record also contains which files of which workers the commit includes. Hence each file is merged exactly once.
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

/// Per worker: the sequence number of its last file in the output.
using Sequences = std::map<std::string, std::uint64_t>;

struct Commit {
  std::uint64_t end = 0;  ///< size of the output at this commit, in bytes
  std::vector<Patch> patches;
  Sequences sequences;  ///< only the workers of which this commit includes files
  bool anew = false;    ///< the output is the file with the hidden name, if that exists
};

/// The journal of one output. One thread. Throws std::system_error. While one exists, no other process can recover the
/// output or begin another journal for it (fcntl lock).
class Journal {
 public:
  /// Returns the path of an output's journal.
  static std::string path_of(const std::string& output) { return output + ".journal"; }
  /// Returns the name of an output while it is begun or rewritten: of the same length, in the same directory.
  static std::string hidden(std::string output);

  /// Completes the last commit of an output whose process was killed. Afterwards the output is a valid ROOT file that
  /// ends where the commit ends. Empty if there is no journal, or no complete record in it. Throws if another process
  /// uses the journal.
  static std::optional<Sequences> recover(const std::string& output);

  /// Returns whether another process uses the journal of this output.
  static bool is_in_use(const std::string& output);

  /// Begins a new journal, which replaces an older one. `first` describes the output as it is, with its sequences.
  Journal(const std::string& output, const Commit& first, bool durable);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();

  /// Records a commit. The commit is made when this returns, although its patches are not in the output yet.
  void append(const Commit& commit);
  /// Replaces the output by the file with the hidden name, which has `end` bytes.
  void replace_output(std::uint64_t end);
  /// Removes the journal of a complete output.
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
