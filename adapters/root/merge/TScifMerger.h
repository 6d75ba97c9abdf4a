// SPDX-License-Identifier: Apache-2.0
// Merges ROOT files in memory into one ROOT file on disk. For C++ and PyROOT.
//
//   TScifMerger merger("out.root");
//   merger.Add("worker 7", 1, data, bytes);   // read in place: the bytes must stay valid until they are released
//   merger.Merge();                           // one batch: everything added since the last
//   merger.Close();
//
// How objects are merged:
//   - Trees are appended; their baskets are copied as they are.
//   - Histograms, and all other objects with a Merge function, are added up.
//   - Directories are merged recursively. RNTuples are merged by ROOT.
//   - Objects that cannot be merged are kept; equal ones are kept once.
//
// The output is a valid ROOT file at every moment, also if this process is killed: it ends with the last batch. A
// journal beside it lets a new TScifMerger for the same output continue. Close removes the journal.
//
// (Include guards, because rootcling does not embed a header with #pragma once in a dictionary.)
#ifndef WHERRY_TSCIFMERGER_H
#define WHERRY_TSCIFMERGER_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace wherry::merge {
class Shapes;
}

/// Threads: one at a time. Errors: nothing throws; after a call has returned false, Error() has the reason.
class TScifMerger {
 public:
  struct Options {
    Options();
    /// ROOT's number of algorithm and level, for everything. -1: baskets are copied as they are, and the rest uses the
    /// compression of the first file.
    int compression = -1;
    /// Threads that read the files of a batch; one thread writes. With more than one, the constructor calls
    /// ROOT::EnableThreadSafety().
    unsigned threads = 1;
    /// Whether a batch also survives a power failure, not only the end of this process.
    bool durable = false;
    /// Whether to rewrite the output, without holes, after each batch that leaves more than 4 % of it empty. At the end
    /// such an output is always rewritten.
    bool compact = false;
    /// Whether to check the structure of each file before ROOT reads it.
    bool check = true;
    /// The first `trials` files are each read in a forked process first, so that a file that kills ROOT is refused.
    /// Costs a few milliseconds per file. No other thread may be in ROOT meanwhile.
    std::uint64_t trials = 0;
    /// Called before ROOT reads or merges a worker's file. The returned object is released afterwards. If `threads` is
    /// more than 1, it is also called by the reading threads.
    std::function<std::shared_ptr<void>(const std::string& worker)> watch;
    /// Mergers that share this accept only files that fit the files of all of them, so that their outputs can be
    /// joined. Null: not shared.
    std::shared_ptr<wherry::merge::Shapes> shapes;
  };
  static std::shared_ptr<wherry::merge::Shapes> MakeShapes();

  struct Counts {
    std::uint64_t files = 0;  ///< files merged by this object
    std::uint64_t bytes = 0;  ///< bytes of these files
    std::uint64_t batches = 0;
    std::uint64_t refused = 0;
    std::uint64_t duplicates = 0;  ///< files that were already in the output
    std::uint64_t known = 0;       ///< merged files so similar to an earlier one that ROOT did not have to read them
  };
  /// Called once for each file, during Merge. `problem` is empty if the file is in the output, now or already before;
  /// else it has the reason. After the call the file's bytes are not read any more.
  using Release = std::function<void(const std::string& problem)>;

  /// Continues an output that a killed process left behind; else begins a new one, which replaces an older file of that
  /// name. Check IsOpen().
  explicit TScifMerger(const std::string& output);
  TScifMerger(const std::string& output, const Options& options);
  TScifMerger(const TScifMerger&) = delete;
  TScifMerger& operator=(const TScifMerger&) = delete;
  /// Does not close: the output stays as it was after the last batch, with its journal.
  ~TScifMerger();

  /// Adds a file to the next batch. The files of one worker must have increasing sequence numbers. Files up to the last
  /// one in the output are released and not merged again.
  void Add(const std::string& worker, std::uint64_t sequence, const void* data, std::size_t bytes,
           Release release = {});
  /// Returns whether this file is in the output, whichever process merged it.
  bool Has(const std::string& worker, std::uint64_t sequence) const;
  /// Tells that no more files come from this worker. Until then the merger keeps, separately, the objects that the
  /// worker may replace. Call it when no file of the worker is pending.
  void Finish(const std::string& worker);
  /// Returns the number of files that wait for Merge.
  std::size_t Pending() const;
  /// Merges all pending files as one batch. False if the output can no longer be written; then it contains no file of
  /// the batch.
  bool Merge();
  /// Merges the pending files, appends another output in one batch, and removes that output. Its merger must have been
  /// destroyed without Close, and no worker may have files in both outputs. Afterwards Has() is true for all its files.
  /// False if that failed, for example because histograms have different axes. Files that are not in this output then
  /// stay in the other, which can be joined again.
  /// @param whole  whether every worker had finished; recorded for a process that completes an interrupted end
  bool Join(const std::string& output, bool whole = true);
  /// Merges the pending files and completes the output; `whole` as for Join. False if that failed.
  bool Close(bool whole = true);

  /// Returns false after an error of the output and after Close.
  bool IsOpen() const;
  /// Returns the reason for the first failure; empty if there was none.
  const std::string& Error() const;
  /// Returns warnings about files that were merged, since the last Merge began, one per line. Includes objects that
  /// could not be added up, such as histograms with different axes.
  const std::string& Warning() const;
  /// Returns the paths of objects that could not be added up, such as histograms with different axes. The output
  /// contains only a part of them.
  std::vector<std::string> NotAdded() const;
  const Counts& GetCounts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> fImpl;
};

#endif
