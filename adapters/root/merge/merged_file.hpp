// SPDX-License-Identifier: Apache-2.0
// The output: files are appended to it one by one, and become part of it together, with a commit.
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
  int compression = -1;  ///< ROOT's number; -1: baskets stay as they are, the rest is as in the first file
  bool durable = false;  ///< a commit survives a power failure, too
  bool compact = false;  ///< the output is written anew after each commit that leaves it more holes than it may have
  std::shared_ptr<Shapes> shapes = {};  ///< if not null: shared with outputs that this one will be joined with
};

/// ROOT does not merge what is in one of the files that were appended since the last commit: the last one, or any with
/// an RNTuple, for there it cannot say which. The output is as it was at that commit, once it is opened again.
struct FileRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Errors of the output are thrown (std::exception), and it is of no use afterwards. One thread.
class MergedFile {
 public:
  /// Opens an output that was not closed, at its last commit; else nothing until the first file is there.
  MergedFile(std::string path, MergedFileOptions options);
  MergedFile(const MergedFile&) = delete;
  MergedFile& operator=(const MergedFile&) = delete;
  ~MergedFile();

  /// The last files that are in it.
  [[nodiscard]] const Sequences& sequences() const { return sequences_; }
  /// Empty if the source can be appended to what is there, else why not.
  std::string objection(Source& source);
  /// Opens a new output as the first file that is appended does, if it is not open.
  void begin(const Source& first);
  /// The source must stay until the commit. `last`: which files of which workers it is, or all that it consists of.
  /// Throws FileRefused, too.
  void append(Source& source, const Sequences& last);
  /// Goes into the journal with the next commit, if it is not there: the end has begun (shard_names.hpp). The output
  /// must be open. `whole`: whether all workers had finished.
  void note_end(bool whole);
  /// What a commit needs: that all can be added up, or only some (histograms of other axes cannot).
  enum class AddUp : std::uint8_t { some, all };
  /// Makes everything appended since the last commit part of the output. What could not be added up is noted, or
  /// thrown, and nothing changed, if all must be. Throws FileRefused, too.
  void commit(AddUp add_up = AddUp::some);
  /// Returns ROOT's messages since the last call, about what was merged all the same.
  Messages take_warnings() { return std::exchange(warnings_, {}); }
  /// The paths of all that could not be added up.
  [[nodiscard]] const std::set<std::string>& not_added() const { return not_added_; }
  /// Nothing more comes from this worker: what it has written whole it will not replace.
  void finish(const std::string& worker) {
    if (sums_) sums_->parts().finish(worker);
  }
  /// Nothing more will come: the output is an ordinary ROOT file, as small as if all of it had been written at once.
  /// `whole` is noted for a process that has to go on with the end.
  void close(bool whole);

 private:
  /// An output that is written anew: it has no journal, and keeps its hidden name.
  enum class Copy : std::uint8_t { hidden };
  MergedFile(std::string path, MergedFileOptions options, Copy copy);

  struct Tree {
    TTree* tree = nullptr;  // belongs to its directory
    TDirectory* directory = nullptr;
    std::string name;        // of its key
    Long64_t auto_save = 0;  // what the file says; here a tree is never saved but by a commit
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
  Sequences appended_;  // since the last commit
  const bool copy_ = false;
  bool closing_ = false;
  std::map<std::string, Tree> trees_;
  std::map<std::string, NTuple> ntuples_;
  std::map<std::string, Kind> kinds_;  // by path, of all that is there or appended
  std::map<std::string, std::string> ntuple_fields_;
  std::set<std::string> kept_;  // of what cannot be merged: what is there already
  // Records, and which class of each is misread; the output has their contents.
  std::map<std::string, std::string> streamer_infos_;
  std::string misread_;  // a class of the file being appended, which the process knows with other members
  Messages warnings_;
  std::set<std::string> not_added_;
  bool agreed_ = false;  // to shapes that are not committed
};

}  // namespace wherry::merge
