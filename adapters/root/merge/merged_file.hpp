// SPDX-License-Identifier: Apache-2.0
// The output of a merge. Files are appended one by one, and become part of the output together, with a commit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "adapters/root/merge/commit/journal.hpp"
#include "adapters/root/merge/output_directories.hpp"
#include "adapters/root/merge/output_file.hpp"
#include "adapters/root/merge/read/root_errors.hpp"
#include "adapters/root/merge/read/source.hpp"
#include "adapters/root/merge/sums.hpp"
#include "adapters/root/merge/tree_append.hpp"

class TTree;

namespace wherry::merge {

class Shapes;

struct MergedFileOptions {
  int compression = -1;  ///< ROOT's number; -1: baskets are copied as they are, the rest is as in the first file
  bool durable = false;  ///< a commit also survives a power failure
  bool compact = false;  ///< rewrite the output after each commit that leaves too many holes in it
  std::shared_ptr<Shapes> shapes = {};  ///< if not null: shared with the outputs that this one will be joined with
};

/// ROOT failed to merge one of the files that were appended since the last commit. That is the last one, or, if it
/// failed at an RNTuple, any file with that RNTuple: ROOT does not tell which. To continue, open the output again,
/// which restores the last commit.
struct FileRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One thread. Throws std::exception on an error of the output, which must not be used afterwards.
class MergedFile {
 public:
  /// Opens an output that was not closed, at its last commit. Else the first file that is appended begins a new one.
  MergedFile(std::string path, MergedFileOptions options);
  MergedFile(const MergedFile&) = delete;
  MergedFile& operator=(const MergedFile&) = delete;
  ~MergedFile();

  /// Returns the last file of each worker in the output.
  [[nodiscard]] const Sequences& sequences() const { return sequences_; }
  /// Returns why the source cannot be appended to the output; empty if it can.
  std::string objection(Source& source);
  /// Opens a new output, with the compression of `first` unless the options set one. Does nothing if it is open.
  void begin(const Source& first);
  /// Appends a file. The source must exist until the commit. Also throws FileRefused.
  /// @param last  the worker and sequence number of the file; if the source is an output, those that it consists of
  void append(Source& source, const Sequences& last);
  /// Adds the note that the end has begun (shard_names.hpp) to the next commit, unless the journal has it. The output
  /// must be open. `whole`: whether all workers had finished.
  void note_end(bool whole);
  /// What a commit requires: that all objects can be added up, or only some. Histograms with different axes cannot.
  enum class AddUp : std::uint8_t { some, all };
  /// Makes everything appended since the last commit part of the output. If an object could not be added up: with
  /// `some`, not_added() gets its path; with `all`, throws, and the output is not changed. Also throws FileRefused.
  void commit(AddUp add_up = AddUp::some);
  /// Returns the warnings since the last call, about objects that were merged nevertheless or only in part.
  Messages take_warnings() { return std::exchange(warnings_, {}); }
  /// Returns the paths of the objects that could not be added up.
  [[nodiscard]] const std::set<std::string>& not_added() const { return not_added_; }
  /// Tells that no more files come from this worker: it will not replace the objects that it has written.
  void finish(const std::string& worker) {
    if (sums_) sums_->parts().finish(worker);
  }
  /// Completes the output: an ordinary ROOT file, about as small as if all of it had been written at once. `whole` is
  /// recorded for a process that continues an interrupted end.
  void close(bool whole);

 private:
  /// Marks the copy of an output that is rewritten: it has no journal, and keeps its hidden name.
  enum class Copy : std::uint8_t { hidden };
  MergedFile(std::string path, MergedFileOptions options, Copy copy);

  struct Tree {
    TTree* tree = nullptr;  // owned by its directory
    TDirectory* directory = nullptr;
    std::string name;        // of its key
    Long64_t auto_save = 0;  // the setting in the file; in memory it is 0, because only commits write trees
    bool changed = false;
  };
  struct NTuple {
    TKey* key = nullptr;
    std::vector<TFile*> files;
  };

  void open_existing();
  void tell_shapes();
  void open_new(int compression);
  void use(std::unique_ptr<OutputFile> file);
  Tree* known_tree(const Place& place);
  Tree* keep(const Place& place, TTree& tree);
  std::string difference(Source& source);
  Way way_of(Source& source, TTree& from, TTree& to, std::string* reason) const;
  bool append_all(Source& source, const std::string& worker);
  Tree* tree_for(Source& source, SourceTree& from);
  bool append_tree(Source& source, SourceTree& from, const std::string& worker);
  void append_key(SourceKey& from);
  void take_classes(Source& source);
  [[nodiscard]] bool has_classes_of(const Source& source) const;
  void require_readable_objects() const;
  void remember(TDirectory& directory, const std::string& path);
  void merge_ntuples(const RootErrors& errors);
  void warn(const Messages& messages) { warnings_.insert(warnings_.end(), messages.begin(), messages.end()); }
  void write_trees();
  void make_commit(AddUp add_up);
  void complete();
  [[nodiscard]] bool has_too_many_holes() const;
  bool write_anew();
  void write_copy(MergedFile& copy);
  void forget();

  std::string path_;
  MergedFileOptions options_;
  std::unique_ptr<OutputFile> file_;
  std::unique_ptr<OutputDirectories> directories_;
  std::unique_ptr<Sums> sums_;
  std::unique_ptr<Journal> journal_;
  Sequences sequences_;
  Sequences appended_;  // files since the last commit
  const bool copy_ = false;
  bool closing_ = false;
  std::map<std::string, Tree> trees_;
  std::map<std::string, NTuple> ntuples_;
  std::map<std::string, Kind> kinds_;  // by path, of everything in the output or appended
  std::map<std::string, std::string> ntuple_fields_;
  std::set<std::string> kept_;  // identities of the objects in the output that cannot be merged
  // Streamer info records whose classes the output has -> the class that this process misreads; empty: none.
  std::map<std::string, std::string> streamer_infos_;
  std::string misread_;  // a class of the file being appended that this process knows with other members; empty: none
  Messages warnings_;
  std::set<std::string> not_added_;
  bool agreed_ = false;  // this output has agreed to shapes that are not committed yet
};

}  // namespace wherry::merge
