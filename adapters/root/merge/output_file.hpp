// SPDX-License-Identifier: Apache-2.0
// A ROOT file that is readable at every moment, whatever becomes of its writer.
//
// ROOT updates a file in place: it marks the old tree header as free, may write the new one over it, and only at the
// end rewrites the directory that names it. Here nothing that the last commit refers to is touched before the next
// commit: space is freed only after it, and the headers, which are the only bytes overwritten in place, are held back
// until everything they refer to is written.
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
  /// An existing file to be gone on with. Throws std::runtime_error.
  explicit OutputFile(const std::string& path);
  /// A new one, which is not there under its name before `publish`: ROOT writes a new file in several steps, too.
  OutputFile(const std::string& path, int compression);
  ~OutputFile() override;

  /// What is written from here to `apply` is replaced by a later commit, and goes where an earlier one's was.
  void begin_commit();
  /// Writes the key lists of these directories (the file itself is always one of them), streamer infos and free space,
  /// and returns the headers, which are not written. Throws std::runtime_error if anything since the last commit could
  /// not be written.
  std::vector<Patch> collect(const std::vector<TDirectory*>& modified);
  /// Whether something could not be written.
  [[nodiscard]] bool failed() const { return failed_ || TestBit(kWriteError); }
  /// Everything written so far is on the disk, not only with the kernel. Throws std::system_error.
  void synchronize();
  /// Writes the headers: the new state is current. The space of what it replaced is free from here on.
  void apply(const std::vector<Patch>& patches);

  /// Gives a new file its name, in place of an older one.
  void publish();
  /// Writes the name into the header of a new file, which is renamed to it later.
  void write_name();
  /// Whether the file has its name still, and not one that another output began. Under a DirectoryLock.
  [[nodiscard]] bool has_its_name() const;
  /// Bytes of the last commit that are those of what it replaced, and of the room for what is to come.
  [[nodiscard]] Long64_t holes() const;
  /// Where the file ends with the last commit.
  [[nodiscard]] Long64_t end() const { return end_; }
  /// No room is kept for commits to come: one is as good as the last, or the file is written anew between them.
  void keep_no_room() { keeps_room_ = false; }

  /// What is written of classes, with what describes those that this process writes itself.
  [[nodiscard]] ClassList& classes() { return classes_; }

  // The output's own list: ROOT's has whatever any file of this process brought.
  void WriteStreamerInfo() override;
  // Nothing: only a commit writes what is in memory. The writer of RNTuples calls it.
  Int_t Write(const char* name = nullptr, Int_t option = 0, Int_t buffer_size = 0) override;
  Int_t Write(const char* name = nullptr, Int_t option = 0, Int_t buffer_size = 0) const override;
  // Frees after the next commit.
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
  bool holding_ = false;  // what is written now goes to held_
  bool failed_ = false;
  std::int64_t position_ = 0;
  std::int64_t buffer_offset_ = 0;
  std::vector<std::byte> buffer_;  // consecutive small writes
  std::vector<Patch> held_;
  std::vector<std::pair<Long64_t, Long64_t>> replaced_;
  std::vector<TObject*> hidden_;  // free places, rising
  Long64_t end_ = 0;
  Long64_t written_before_ = 0;   // this commit
  Long64_t written_by_last_ = 0;  // what a commit writes, about
};

}  // namespace wherry::merge
