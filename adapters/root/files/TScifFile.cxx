// SPDX-License-Identifier: Apache-2.0
#include "TScifFile.h"

#include <TArrayC.h>
#include <TDirectoryFile.h>
#include <TError.h>
#include <TKey.h>
#include <TROOT.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <wherry/error.hpp>

#include "outputs.hpp"
#include "process_end.hpp"
#include "scif_file_impl.hpp"
#include "snapshot.hpp"
#include "stock_socket.hpp"
#include "trees.hpp"
#include "url.hpp"
#include "whole_objects.hpp"

ClassImp(TScifFile);

namespace {

/// Tests for a prefix, because several options read: chains that threads read use READ_WITHOUT_GLOBALREGISTRATION.
bool is_to_be_read(const char* option) {
  const TString mode = TString(option).Strip(TString::kBoth);
  return mode.IsNull() || mode.BeginsWith("READ", TString::kIgnoreCase);
}

/// Whether the directory contains anything but directories. A subdirectory that is not in memory counts as content: the
/// program has deleted it, and it may not have been empty.
bool has_content(const TDirectory& directory) {
  for (TObject* object : *directory.GetListOfKeys()) {
    const auto* const key = static_cast<TKey*>(object);
    const TClass* const type = TClass::GetClass(key->GetClassName());
    if (type == nullptr || !type->InheritsFrom(TDirectory::Class())) return true;
    const auto* const inner = dynamic_cast<TDirectory*>(directory.GetList()->FindObject(key->GetName()));
    if (inner == nullptr || has_content(*inner)) return true;
  }
  return false;
}

}  // namespace

TFile* TScifFile::OpenUrl(const char* url, Option_t* option, const char* title, Int_t compress) {
  if (is_to_be_read(option)) {
    try {
      const wherry::root::FileUrl parsed = wherry::root::parse_url(url);
      const std::string output = wherry::root::noted_output(parsed.address, parsed.name);
      if (!output.empty()) return TFile::Open(output.c_str(), option);
    } catch (const std::exception&) {
      // The constructor below reports the error.
    }
  }
  if (wherry::root::is_ntuple_snapshot()) {
    ::Error("TScifFile::OpenUrl",
            "%s: Snapshot cannot write an RNTuple here, because it reads it again by its URL, which RNTuple does not"
            " support; write a TTree (RSnapshotOptions::fOutputFormat = kTTree), or a local file",
            url);
    return nullptr;
  }
  return new TScifFile(url, option, title, compress);
}

TScifFile::TScifFile(const char* url, Option_t* option, const char* title, Int_t compress)
    : TParallelMergingFile(url, "RECREATE", title, compress) {
  if (IsZombie()) return;
  try {
    const TString mode = TString(option).Strip(TString::kBoth);
    if (mode.CompareTo("RECREATE", TString::kIgnoreCase) != 0 && mode.CompareTo("CREATE", TString::kIgnoreCase) != 0 &&
        mode.CompareTo("NEW", TString::kIgnoreCase) != 0) {
      throw wherry::Error(EINVAL, "open", url,
                          "a wherry:// file can only be written, with option RECREATE; a process can read a file that "
                          "it has written itself after closing it, if the server reported where the output is");
    }
    wherry::root::watch_for_end();
    fImpl = std::make_unique<Impl>(wherry::root::parse_url(url));
    // The base class has begun the file in its own memory: its constructor cannot call the functions of this class.
    fImpl->size = static_cast<std::size_t>(fEND);
    if (fImpl->size > Impl::kSmall) throw wherry::Error(ENAMETOOLONG, "open", url, "name and title are too long");
    fImpl->offset = static_cast<std::size_t>(fSysOffset);
    TMemFile::SysSeek(fD, 0, SEEK_SET);
    TMemFile::SysRead(fD, fImpl->small.data(), static_cast<Int_t>(fImpl->size));
    // Programs for ROOT's own server also upload an empty file, to get a number. That succeeds, and hands nothing over.
    wherry::root::serve_stock_program(*this, static_cast<Int_t>(fImpl->client.number()), [this] {
      if (fImpl == nullptr) return false;
      if (has_content(*this)) {
        Complete();
        if (!HandOver()) return false;
      }
      fImpl->whole.begin_next(*this);
      fImpl->parts.restore(*this);
      return true;
    });
  } catch (const std::exception& error) {
    Error("TScifFile", "%s", error.what());
    fImpl.reset();
    SetWritable(kFALSE);
    TMemFile::Close();
    MakeZombie();
    gDirectory = gROOT;
  }
}

TScifFile::~TScifFile() {
  if (fImpl != nullptr) fImpl->deleted = true;
  Close();
  wherry::root::end_stock_program(*this);
}

void TScifFile::Close(Option_t* option) {
  if (!IsOpen() || fImpl == nullptr) return TMemFile::Close(option);
  if (fImpl->is_inherited() || (fImpl->deleted && fImpl->is_unwound())) return Abandon(option);
  const bool something = has_content(*this) || (fImpl->posted == 0 && !GetListOfKeys()->IsEmpty());
  // ROOT closes all files that are still open at its end with the option "nodelete".
  const bool left_open = TString(option).Contains("nodelete") || (fImpl->deleted && wherry::root::is_ending());
  const std::string unwritten = left_open ? wherry::root::unwritten_trees(*this) : "";
  fImpl->writing = true;
  TMemFile::Close(option);
  if (left_open) return LeaveToExitStatus(something, unwritten);
  if (something) HandOver();
  if (!TestBit(kWriteError)) {
    try {
      fImpl->finish();
    } catch (const std::exception& error) {
      Fail("Close", error.what());
    }
  }
  fImpl.reset();
}

/// Closes without handing anything over. The connection ends, unless it belongs to the parent of this process. The
/// server then counts the worker as lost.
void TScifFile::Abandon(Option_t* option) {
  SetWritable(kFALSE);
  TMemFile::Close(option);
  if (fImpl->is_inherited()) {
    [[maybe_unused]] const Impl* const parents = fImpl.release();  // the connection belongs to the parent
  } else {
    fImpl.reset();
  }
}

/// Finishes the file at exit, if the exit status is 0 and nothing is unwritten. A file that a failed program has left
/// open is not complete, although ROOT closes it normally.
void TScifFile::LeaveToExitStatus(Bool_t something, const std::string& unwritten) {
  const auto bytes = static_cast<std::size_t>(GetEND());
  const bool good = !TestBit(kWriteError);
  const std::shared_ptr<Impl> impl(std::move(fImpl));
  wherry::root::at_end([=, url = std::string(GetName())](int status) {
    std::string why;
    if (status != 0) why = "left open by a program that ended with status " + std::to_string(status);
    if (status == 0 && !unwritten.empty()) why = "left open with entries that were never written: " + unwritten;
    try {
      if (!why.empty()) throw std::runtime_error(why + "; the server counts this worker as lost; close the file");
      if (!good) return;
      if (something) impl->hand_over(bytes);
      impl->finish();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "Error in <TScifFile::Close>: %s: %s\n", url.c_str(), error.what());  // too late for ROOT's
    }
  });
}

Int_t TScifFile::Write(const char* /*name*/, Int_t option, Int_t buffer_size) {
  if (fImpl == nullptr) return TMemFile::Write(nullptr, option, buffer_size);
  fImpl->writing = true;
  fImpl->parts.restore(*this);  // before the trees are written: their settings are part of them
  const Int_t bytes = TMemFile::Write(nullptr, option, buffer_size);
  fImpl->writing = false;
  // The result counts only attached objects. The file may contain objects that were written otherwise.
  if (bytes <= 0 && !has_content(*this) && !TestBit(kWriteError)) return bytes;
  return HandOverAndReset() ? bytes : -1;
}

Int_t TScifFile::Write(const char* name, Int_t option, Int_t buffer_size) const {
  Error("Write const", "a const TFile should not be written; the file is written nevertheless");
  return const_cast<TScifFile*>(this)->Write(name, option, buffer_size);
}

/// Writes a tree's header without compression: a process on the same machine reads it at once, so that compressing does
/// not pay. Baskets keep the file's compression.
TKey* TScifFile::CreateKey(TDirectory* mother, const TObject* object, const char* name, Int_t buffer_size) {
  if (fImpl != nullptr) fImpl->whole.note(*this, *mother, *object, name);
  const Int_t compression = fCompress;
  if (object->InheritsFrom("TTree")) fCompress = 0;
  TKey* const key = TMemFile::CreateKey(mother, object, name, buffer_size);
  fCompress = compression;
  return key;
}

TKey* TScifFile::CreateKey(TDirectory* mother, const void* object, const TClass* type, const char* name,
                           Int_t buffer_size) {
  if (fImpl != nullptr && type->IsTObject()) {
    // DynamicCast only computes the address of the TObject within the object.
    const void* const base = const_cast<TClass*>(type)->DynamicCast(TObject::Class(), const_cast<void*>(object));
    fImpl->whole.note(*this, *mother, *static_cast<const TObject*>(base), name);
  }
  return TMemFile::CreateKey(mother, object, type, name, buffer_size);
}

void TScifFile::WriteKeys() {
  if (fImpl != nullptr) fImpl->whole.write(*this);
  TMemFile::WriteKeys();
}

/// ROOT calls this after a tree has saved itself. At that point all trees can be handed over.
void TScifFile::WriteStreamerInfo() {
  WriteClasses();
  if (fImpl != nullptr && fImpl->parts.asked() && !fImpl->writing) HandOverTrees();
}

void TScifFile::WriteClasses() {
  if (fImpl == nullptr || !IsWritable() || fClassIndex == nullptr || fSeekInfo != 0) {
    return TMemFile::WriteStreamerInfo();
  }
  // The first element is a flag: the index contains classes that were not written yet.
  const std::string_view classes(fClassIndex->GetArray() + 1, static_cast<std::size_t>(fClassIndex->GetSize() - 1));
  if (fImpl->classes.is_of(classes)) {
    const wherry::root::Record record = fImpl->classes.write(*this);
    fSeekInfo = record.seek;
    fNbytesInfo = record.bytes;
    fClassIndex->SetAt(0, 0);
    return;
  }
  std::string before(classes);
  TMemFile::WriteStreamerInfo();
  fImpl->classes.keep(std::move(before), fImpl->record(fSeekInfo, fNbytesInfo));
}

Bool_t TScifFile::UploadAndReset() {
  if (fImpl == nullptr) return kFALSE;
  Complete();
  return HandOverAndReset();
}

/// Writes the key lists and the header, without which the keys written so far cannot be found.
void TScifFile::Complete() {
  const TDirectory::TContext context;
  Save();
  WriteClasses();
  WriteFree();
  WriteHeader();
}

Bool_t TScifFile::HandOverAndReset() {
  if (fImpl == nullptr || !HandOver()) return kFALSE;
  fImpl->whole.begin_next(*this);
  ResetAfterMerge(nullptr);
  fImpl->parts.restore(*this);
  return !TestBit(kWriteError);
}

void TScifFile::HandOverTrees() {
  // Another kind of object may have been written since the trees were told to save themselves.
  if (!wherry::root::holds_only_trees(*this)) return fImpl->parts.restore(*this);
  if (!std::exchange(fImpl->told_of_parts, true)) {
    Info("WriteStreamerInfo",
         "the file approaches the server's size limit: its trees are handed over in parts, and continue empty");
  }
  // Before the trees are written, because their settings are part of them.
  fImpl->parts.restore(*this);
  fImpl->writing = true;
  wherry::root::Parts::write_trees(*this);
  Complete();
  fImpl->writing = false;
  if (!HandOver()) return;
  fImpl->whole.begin_next(*this);
  ResetAfterMerge(nullptr);
}

Bool_t TScifFile::HandOver() {
  try {
    if (TestBit(kWriteError)) throw std::runtime_error("the file is incomplete and is not handed over");
    fImpl->hand_over(static_cast<std::size_t>(GetEND()));
    return kTRUE;
  } catch (const std::exception& error) {
    Fail("Write", error.what());
    return kFALSE;
  }
}

Bool_t TScifFile::Wait() {
  if (fImpl == nullptr) return !TestBit(kWriteError);
  if (fImpl->is_inherited()) return kFALSE;  // the server's messages are for the parent
  try {
    fImpl->client.wait();
    return kTRUE;
  } catch (const std::exception& error) {
    Fail("Wait", error.what());
    return kFALSE;
  }
}

/// Marks the file as TFile does when a write fails, and reports why.
void TScifFile::Fail(const char* where, const char* why) {
  SetBit(kWriteError);
  SetWritable(kFALSE);
  Error(where, "%s", why);
}

Long64_t TScifFile::GetSize() const { return fImpl == nullptr ? 0 : static_cast<Long64_t>(fImpl->size); }
Long64_t TScifFile::GetPosted() const { return fImpl == nullptr ? 0 : fImpl->posted; }
Int_t TScifFile::GetPending() const { return fImpl == nullptr ? 0 : static_cast<Int_t>(fImpl->client.pending()); }
Long64_t TScifFile::GetHeld() const {
  return fImpl == nullptr ? 0 : static_cast<Long64_t>(fImpl->client.file().size());
}

Int_t TScifFile::SysWrite(Int_t /*fd*/, const void* buffer, Int_t bytes) {
  if (fImpl == nullptr || bytes < 0 || fImpl->is_inherited()) {
    errno = EBADF;
    return -1;
  }
  // Registers again: the static object that holds the file may have been constructed only after the file was opened.
  if (!std::exchange(fImpl->watched, true)) wherry::root::watch_for_end();
  try {
    const std::size_t end = fImpl->offset + static_cast<std::size_t>(bytes);
    std::memcpy(fImpl->memory(std::max(end, fImpl->size)) + fImpl->offset, buffer, static_cast<std::size_t>(bytes));
    fImpl->offset = end;
    fImpl->size = std::max(fImpl->size, end);
    fImpl->ask_for_parts(*this);
    return bytes;
  } catch (const wherry::Error& error) {
    Error("SysWrite", "%s", error.what());
    errno = error.code().value();
    return -1;
  }
}

Int_t TScifFile::SysRead(Int_t /*fd*/, void* buffer, Int_t bytes) {
  if (fImpl == nullptr || bytes < 0) {
    errno = EBADF;
    return -1;
  }
  const std::size_t left = fImpl->size - std::min(fImpl->size, fImpl->offset);
  const std::size_t count = std::min(left, static_cast<std::size_t>(bytes));
  const auto lease = fImpl->client.file();
  std::memcpy(buffer, (lease.empty() ? fImpl->small.data() : lease.data()) + fImpl->offset, count);
  fImpl->offset += count;
  return static_cast<Int_t>(count);
}

Long64_t TScifFile::SysSeek(Int_t /*fd*/, Long64_t offset, Int_t whence) {
  if (fImpl == nullptr) return 0;
  const Long64_t from =
      whence == SEEK_SET ? 0 : static_cast<Long64_t>(whence == SEEK_CUR ? fImpl->offset : fImpl->size);
  if (from + offset < 0) {
    errno = EINVAL;
    return -1;
  }
  fImpl->offset = static_cast<std::size_t>(from + offset);
  return from + offset;
}

Int_t TScifFile::SysStat(Int_t /*fd*/, Long_t* id, Long64_t* size, Long_t* flags, Long_t* time) {
  if (id != nullptr) *id = 0;
  if (size != nullptr) *size = GetSize();
  if (flags != nullptr) *flags = 0;
  if (time != nullptr) *time = 0;
  return 0;
}
