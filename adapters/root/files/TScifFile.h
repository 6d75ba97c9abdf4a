// SPDX-License-Identifier: Apache-2.0
#ifndef WHERRY_TScifFile
#define WHERRY_TScifFile

// A ROOT file that is written directly into the memory of the process that will merge it.
//
//   auto file = TFile::Open("wherry://0:2000//data/out.root", "RECREATE");
//   ... fill trees and histograms, as into any file; now and then file->Write() ...
//   file->Close();
//
// Handing over: the server (wherry-merge) joins the files of all workers that write under one name.
//   - Write() hands over the content of the file and resets the attached objects. Trees continue with an empty file, as
//     with TParallelMergingFile. Histograms, and other objects that merge by addition and have Reset(), are reset.
//   - Any other object that is written again replaces, in the output, what this file wrote under that name before.
//   - Close() hands over what was written since, and waits until the server has processed all of it.
//   - If the file approaches the server's size limit, its trees are handed over from inside TTree::Fill, and continue
//     empty.
//
// Finishing: Close() or delete tells the server that this worker has finished. If the program leaves the file open,
// ROOT or Python closes it at the end of the process. It is then finished only if the exit status is 0 and all entries
// of its trees were written. Otherwise the server counts the worker as lost. The same applies to a file that is deleted
// while an exception is thrown.
//
// Reading: a URL that this process has written and closed can be opened with READ. The result is an ordinary TFile: the
// server's output, with what all workers have handed over so far.
//
// The class derives from TParallelMergingFile only for programs that cast the result of TFile::Open. It uses none of
// that class's functions.
//
// URL: wherry://NODE:PORT/NAME?OPTIONS; a NAME that begins with another / is absolute. Options, separated by &:
// reconnect=SECONDS (default 0): how long to look for a restarted server.
//
// Threads: as for TFile, each object by one thread at a time; any number of objects (ROOT::EnableThreadSafety()).
//
// Errors are reported by TObject::Error. As with TFile, they leave the file a zombie or with kWriteError set. A file
// that is incomplete is never handed over.

#include <memory>
#include <string>

#include <TParallelMergingFile.h>

class TScifFile : public TParallelMergingFile {
 public:
  /// Called by TFile::Open for such a URL. Returns a new TScifFile, or, to read, the server's output. The caller owns
  /// it. After an error: null or a zombie.
  static TFile* OpenUrl(const char* url, Option_t* option = "", const char* title = "",
                        Int_t compress = ROOT::RCompressionSetting::EDefaults::kUseCompiledDefault);
  explicit TScifFile(const char* url, Option_t* option = "", const char* title = "",
                     Int_t compress = ROOT::RCompressionSetting::EDefaults::kUseCompiledDefault);
  ~TScifFile() override;

  void Close(Option_t* option = "") override;
  /// Writes all objects in memory and hands the file over. Returns the value of TFile::Write, or -1 if the file was not
  /// handed over.
  Int_t Write(const char* name = nullptr, Int_t option = 0, Int_t buffer_size = 0) override;
  Int_t Write(const char* name = nullptr, Int_t option = 0, Int_t buffer_size = 0) const override;
  /// Hands over the content of the file and begins the next one. False if the file was not handed over.
  Bool_t UploadAndReset();  // NOLINT(bugprone-derived-method-shadowing-base-method): ROOT's is not virtual
  /// Blocks until the server has processed all files handed over. False if the server is gone or has refused a file.
  Bool_t Wait();

  Long64_t GetSize() const override;
  TKey* CreateKey(TDirectory* mother, const TObject* object, const char* name, Int_t buffer_size) override;
  TKey* CreateKey(TDirectory* mother, const void* object, const TClass* type, const char* name,
                  Int_t buffer_size) override;
  /// Returns how many files were handed over.
  Long64_t GetPosted() const;
  /// Returns how many of these the server has not yet reported done.
  Int_t GetPending() const;
  /// Returns how many bytes of the server's memory the file being written may use now.
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
