// SPDX-License-Identifier: Apache-2.0
// Merges ROOT files that lie in memory into one ROOT file on disk. From C++ and from PyROOT.
//
//   TScifMerger merger("out.root");
//   merger.Add("worker 7", 1, data, bytes);   // is read in place: it must stay until it is released
//   merger.Merge();                           // one batch: everything added since the last
//   merger.Close();
//
// Trees are appended basket by basket as they are, histograms and whatever else has Merge are added up, directories are
// followed, RNTuples are merged by ROOT, and what cannot be merged is kept, equal ones once. The output is open all the
// time. It is a valid ROOT file that ends with the last batch at every moment, also if this process is killed: beside
// it lies a journal, which a new TScifMerger for the same output goes on from and which Close removes.
//
// (rootcling takes no header that says #pragma once whole into a dictionary.)
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

/// Threads: one at a time. Nothing throws; where a call says no, Error says why.
class TScifMerger {
 public:
  struct Options {
    Options();
    /// ROOT's number of algorithm and level; -1 leaves baskets as they are and takes the rest from the first file.
    int compression = -1;
    /// Threads that read the files of a batch; one writes. With more than one, the constructor calls
    /// ROOT::EnableThreadSafety().
    unsigned threads = 1;
    /// Whether a batch survives a power failure, and not only the end of this process.
    bool durable = false;
    /// Whether the output is written anew, without holes, after each batch that leaves more than 4 % of it empty. At
    /// the end it always is.
    bool compact = false;
    /// Whether the structure of each file is checked before ROOT sees it.
    bool check = true;
    /// How many files, of those that come first, are read in a process forked for each before, so that one that kills
    /// ROOT is refused. Costs some milliseconds a file. No other thread may be in ROOT meanwhile.
    std::uint64_t trials = 0;
    /// Called before ROOT reads or merges a worker's file; what it returns is let go of afterwards. With several
    /// threads also by them.
    std::function<std::shared_ptr<void>(const std::string& worker)> watch;
    /// Mergers that have the same accept only files that fit to those of all of them, and their outputs can be joined.
    std::shared_ptr<wherry::merge::Shapes> shapes;
  };
  static std::shared_ptr<wherry::merge::Shapes> MakeShapes();

  struct Counts {
    std::uint64_t files = 0;  ///< that are in the output, with those of an interrupted process
    std::uint64_t bytes = 0;  ///< of them
    std::uint64_t batches = 0;
    std::uint64_t refused = 0;
    std::uint64_t duplicates = 0;  ///< that were in the output already
    std::uint64_t known = 0;       ///< of the files: those like one before, which ROOT need not read
  };
  /// Called once for each file, during Merge: an empty text when the file is safely in the output or was there already,
  /// else why it is not. From then on its bytes are not read any more.
  using Release = std::function<void(const std::string& problem)>;

  /// Goes on with an output that a killed process left, else begins a new one; an older file of that name is replaced.
  explicit TScifMerger(const std::string& output);
  TScifMerger(const std::string& output, const Options& options);
  TScifMerger(const TScifMerger&) = delete;
  TScifMerger& operator=(const TScifMerger&) = delete;
  /// Without Close the output stays as after the last batch, and its journal beside it.
  ~TScifMerger();

  /// Files of one worker have rising numbers. Those up to the last in the output are released and not merged again.
  void Add(const std::string& worker, std::uint64_t sequence, const void* data, std::size_t bytes,
           Release release = {});
  /// Whether this file is in the output, of this process or of one that was killed.
  bool Has(const std::string& worker, std::uint64_t sequence) const;
  /// Nothing more comes from this worker, until which some of what it has written is kept for itself. To be called when
  /// nothing of it waits.
  void Finish(const std::string& worker);
  /// How many wait for Merge.
  std::size_t Pending() const;
  /// False if the output cannot be written any more; nothing of the batch is in it then.
  bool Merge();
  /// Merges what waits, and appends another output, of which the merger is gone without Close: baskets as they are, in
  /// one batch that Has all files of it, and removes it. No worker may have files in both. False if that failed, as
  /// also where histograms do not add up: what is not in this output stays in the other, which can be joined again.
  /// `whole`: whether every worker had finished; recorded, for the process that completes an interrupted end.
  bool Join(const std::string& output, bool whole = true);
  /// Merges what waits, and completes the output; `whole` as for Join. False if that failed.
  bool Close(bool whole = true);

  /// False after an error of the output; every call does nothing then.
  bool IsOpen() const;
  const std::string& Error() const;
  /// What ROOT said of files that are in the output all the same, since the last Merge began: a line each. So it says
  /// what could not be added up, as histograms of other axes.
  const std::string& Warning() const;
  /// The paths of objects that could not be added up, as histograms of other axes: the output has part of them.
  std::vector<std::string> NotAdded() const;
  const Counts& GetCounts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> fImpl;
};

#endif
