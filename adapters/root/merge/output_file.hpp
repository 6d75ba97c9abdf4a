// SPDX-License-Identifier: Apache-2.0
// A ROOT file that is readable at every moment, even if its writer is killed.
//
// Problem: ROOT updates a file in place. It marks the old tree header as free, may overwrite it with the new one, and
// rewrites the directory that refers to it only at the end. This class never touches data that the last commit refers
// to before the next commit. It frees space only after the commit. The headers are the only bytes that it overwrites in
// place, and it holds them back until everything that they refer to is written.
#pragma once

#include <TFile.h>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

class TObject;

#include "adapters/root/merge/commit/journal.hpp"
#include "adapters/root/merge/read/class_list.hpp"

namespace wherry::merge {

class OutputFile final : public TFile {
 public:
  /// Opens an existing file to continue it. Throws std::runtime_error.
  explicit OutputFile(const std::string& path);
  /// Creates a file under the hidden name. It gets its own name with `publish`, because ROOT also writes a new file in
  /// several steps. Throws std::runtime_error.
  OutputFile(const std::string& path, int compression);
  ~OutputFile() override;

  /// Begins a commit. Data written from here to `apply` is replaced by a later commit. It may reuse holes, that is, the
  /// space of earlier commits.
  void begin_commit();
  /// Writes the key lists of these directories (the file itself is always one of them), streamer infos and free space.
  /// Returns the headers, which are not written. Throws std::runtime_error if a write since the last commit has failed.
  std::vector<Patch> collect(const std::vector<TDirectory*>& modified);
  /// Returns whether a write has failed.
  [[nodiscard]] bool failed() const { return failed_ || TestBit(kWriteError); }
  /// Blocks until everything written so far is on the disk. Throws std::system_error.
  void synchronize();
  /// Writes the headers, which makes the new state current, and frees the space of the data that it replaced.
  void apply(const std::vector<Patch>& patches);

  /// Renames a new file from its hidden name to its own; replaces an older file.
  void publish();
  /// Writes the final name into the header of a new file, which is renamed to it later.
  void write_name();
  /// Returns whether the file of this name is still this file. Another output may have begun one with the same hidden
  /// name. Call it under a DirectoryLock.
  [[nodiscard]] bool has_its_name() const;
  /// Returns the unused bytes in the file: of data that was replaced, and the space reserved for commits.
  [[nodiscard]] Long64_t holes() const;
  /// Returns the size of the file at the last commit.
  [[nodiscard]] Long64_t end() const { return end_; }
  /// Reserves no space for further commits: there is only one, or the file is rewritten between them.
  void keep_no_room() { keeps_room_ = false; }

  /// Returns the classes whose descriptions are written. Those that this process itself writes are added to them.
  [[nodiscard]] ClassList& classes() { return classes_; }

  // Writes the output's own list of classes: ROOT's list has those of all files of this process.
  void WriteStreamerInfo() override;
  // Does nothing, because only a commit writes objects in memory. The writer of RNTuples calls it.
  Int_t Write(const char* name = nullptr, Int_t option = 0, Int_t buffer_size = 0) override;
  Int_t Write(const char* name = nullptr, Int_t option = 0, Int_t buffer_size = 0) const override;
  // Defers: the space becomes free after the next commit.
  void MakeFree(Long64_t first, Long64_t last) override;

 protected:
  Int_t SysRead(Int_t fd, void* buffer, Int_t length) override;
  Int_t SysWrite(Int_t fd, const void* buffer, Int_t length) override;
  Long64_t SysSeek(Int_t fd, Long64_t offset, Int_t whence) override;
  Int_t SysStat(Int_t fd, Long_t* id, Long64_t* size, Long_t* flags, Long_t* modtime) override;
  Int_t SysSync(Int_t fd) override;

 private:
  OutputFile(const std::string& path, const std::string& shown_as, const char* mode, int compression);
  [[nodiscard]] std::vector<TStreamerInfo*> tagged_classes() const;
  void show_holes();
  void hide_holes();
  void make_hole(Long64_t bytes);
  void write_gap(Long64_t first, Long64_t bytes);
  void join_first_page();
  bool flush();
  bool write_at(const void* buffer, std::size_t length, std::int64_t offset);

  std::string path_;
  ClassList classes_;
  bool keeps_room_ = true;
  bool ready_ = false;    // false while TFile's constructor and destructor write
  bool holding_ = false;  // writes go to held_ instead of the file
  bool failed_ = false;
  std::int64_t position_ = 0;
  std::int64_t buffer_offset_ = 0;
  std::vector<std::byte> buffer_;  // consecutive small writes
  std::vector<Patch> held_;
  std::vector<std::pair<Long64_t, Long64_t>> replaced_;
  std::vector<TObject*> hidden_;  // free places that ROOT does not see now, increasing
  Long64_t end_ = 0;
  Long64_t written_before_ = 0;   // bytes written before this commit
  Long64_t written_by_last_ = 0;  // bytes written by the last commit; the next one needs about as many
};

}  // namespace wherry::merge
