// SPDX-License-Identifier: Apache-2.0
#ifndef WHERRY_TScifFile
#define WHERRY_TScifFile

// A ROOT file that is written straight into the memory of the process that will merge it.
//
//   auto file = TFile::Open("wherry://0:2000//data/out.root", "RECREATE");
//   ... fill trees and histograms, as into any file; now and then file->Write() ...
//   file->Close();
//
// Write() hands over what is in the file and resets the objects attached to it: trees, as TParallelMergingFile does, go
// on with an empty file, and histograms (whatever is merged by adding up and has Reset()) begin at nothing. Whatever
// else is written again replaces, in the output, what this file has written under that name before. Close() hands over
// what was written since, and waits until the server has all of it where it belongs. The server (wherry-merge) joins
// the files of all workers that write under one name. Where a file becomes so large that the server may not take it,
// its trees are handed over from inside TTree::Fill, and go on empty.
//
// Close(), or delete, says that this worker has finished. A file that the program leaves open, so that ROOT or Python
// closes it at the end of the process, is finished if the exit status is 0 and no tree has entries that were never
// written. Else, or if it is deleted while an exception is thrown, the server counts the worker as lost.
//
// A URL that this process has written and closed can be opened with READ: it is the server's output then, with what all
// workers have handed over so far, as an ordinary TFile.
//
// It is a TParallelMergingFile so that programs which cast what TFile::Open returns go on working; none of that class's
// functions is used.
//
// URL: wherry://NODE:PORT/NAME?OPTIONS, where a NAME that begins with another / is absolute. Options, with & between
// them: reconnect=SECONDS (0): how long to look for a restarted server.
//
// Threads: as for TFile, each object by one thread at a time; any number of objects (ROOT::EnableThreadSafety()).
//
// Errors are reported by TObject::Error and leave the file as TFile does: a zombie, or with kWriteError set. What was
// not handed over whole is never handed over.

#include <memory>
#include <string>

#include <TParallelMergingFile.h>

class TScifFile : public TParallelMergingFile {
 public:
  /// What TFile::Open does with such a URL: a new TScifFile, or to read, the server's output. Belongs to the caller.
  static TFile* OpenUrl(const char* url, Option_t* option = "", const char* title = "",
                        Int_t compress = ROOT::RCompressionSetting::EDefaults::kUseCompiledDefault);
  explicit TScifFile(const char* url, Option_t* option = "", const char* title = "",
                     Int_t compress = ROOT::RCompressionSetting::EDefaults::kUseCompiledDefault);
  ~TScifFile() override;

  void Close(Option_t* option = "") override;
  /// Writes all objects in memory and hands the file over. Returns what TFile::Write does, or -1.
  Int_t Write(const char* name = nullptr, Int_t option = 0, Int_t buffer_size = 0) override;
  Int_t Write(const char* name = nullptr, Int_t option = 0, Int_t buffer_size = 0) const override;
  /// Hands over what is in the file and begins the next. False: it was not.
  Bool_t UploadAndReset();  // NOLINT(bugprone-derived-method-shadowing-base-method): ROOT's is not virtual
  /// Waits until all that was handed over is where it belongs. False: the server is gone, or refused something.
  Bool_t Wait();

  Long64_t GetSize() const override;
  TKey* CreateKey(TDirectory* mother, const TObject* object, const char* name, Int_t buffer_size) override;
  TKey* CreateKey(TDirectory* mother, const void* object, const TClass* type, const char* name,
                  Int_t buffer_size) override;
  /// How many files were handed over, and how many of them the server has not yet put where they belong.
  Long64_t GetPosted() const;
  Int_t GetPending() const;
  /// Bytes of the server's memory that this file holds now.
  Long64_t GetHeld() const;

 protected:
  Int_t SysRead(Int_t fd, void* buffer, Int_t bytes) override;
  Int_t SysWrite(Int_t fd, const void* buffer, Int_t bytes) override;
  void WriteKeys() override;
  void WriteStreamerInfo() override;
  Long64_t SysSeek(Int_t fd, Long64_t offset, Int_t whence) override;
  Int_t SysStat(Int_t fd, Long_t* id, Long64_t* size, Long_t* flags, Long_t* time) override;

 private:
  class Impl;
  Bool_t HandOver();
  Bool_t HandOverAndReset();
  void Complete();
  void HandOverTrees();
  void WriteClasses();
  void LeaveToExitStatus(Bool_t something, const std::string& unwritten);
  void Abandon(Option_t* option);
  void Fail(const char* where, const char* why);

  std::unique_ptr<Impl> fImpl;  //!  null: closed

  ClassDefOverride(TScifFile, 0)  // A file in the memory of the process that will merge it
};

#endif
