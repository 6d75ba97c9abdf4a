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

/// There is more than one such option: READ_WITHOUT_GLOBALREGISTRATION is that of chains which threads read.
bool is_to_be_read(const char* option) {
  const TString mode = TString(option).Strip(TString::kBoth);
  return mode.IsNull() || mode.BeginsWith("READ", TString::kIgnoreCase);
}

/// Whether there is anything but directories in it. One that the program has deleted may have had something.
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
      // It is said below.
    }
  }
  if (wherry::root::is_ntuple_snapshot()) {
    ::Error("TScifFile::OpenUrl",
            "%s: Snapshot cannot write an RNTuple here, for it reads it again by a URL that RNTuple does not know; let"
            " it write a TTree (RSnapshotOptions::fOutputFormat = kTTree), or a local file",
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
                          "such a file can only be written, with option RECREATE; a process may read what it has "
                          "written itself, when that is closed and the server said where it is");
    }
    wherry::root::watch_for_end();
    fImpl = std::make_unique<Impl>(wherry::root::parse_url(url));
    // The base class has begun a file in memory of its own, before these functions were there to be called.
    fImpl->size = static_cast<std::size_t>(fEND);
    if (fImpl->size > Impl::kSmall) throw wherry::Error(ENAMETOOLONG, "open", url, "name and title are too long");
    fImpl->offset = static_cast<std::size_t>(fSysOffset);
    TMemFile::SysSeek(fD, 0, SEEK_SET);
    TMemFile::SysRead(fD, fImpl->small.data(), static_cast<Int_t>(fImpl->size));
    // Programs for ROOT's own server hand over an empty file, too, to be given a number.
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
  // ROOT says so to all files that are open when it ends.
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

/// Nothing is written any more. Its server hears of that by the end of the connection.
void TScifFile::Abandon(Option_t* option) {
  SetWritable(kFALSE);
  TMemFile::Close(option);
  if (fImpl->is_inherited()) {
    [[maybe_unused]] const Impl* const parents = fImpl.release();  // the connection is, too
  } else {
    fImpl.reset();
  }
}

/// A file that a failed program has left open is not complete, though ROOT closes it in order.
void TScifFile::LeaveToExitStatus(Bool_t something, const std::string& unwritten) {
  const auto bytes = static_cast<std::size_t>(GetEND());
  const bool good = !TestBit(kWriteError);
  const std::shared_ptr<Impl> impl(std::move(fImpl));
  wherry::root::at_end([=, url = std::string(GetName())](int status) {
    std::string why;
    if (status != 0) why = "left open by a program that ended with status " + std::to_string(status);
    if (status == 0 && !unwritten.empty()) why = "left open, and never written: " + unwritten;
    try {
      if (!why.empty()) throw std::runtime_error(why + "; the server counts this worker as lost");
      if (!good) return;
      if (something) impl->hand_over(bytes);
      impl->finish();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "Error in <TScifFile::Close>: %s: %s\n", url.c_str(), error.what());  // ROOT is gone
    }
  });
}

Int_t TScifFile::Write(const char* /*name*/, Int_t option, Int_t buffer_size) {
  if (fImpl == nullptr) return TMemFile::Write(nullptr, option, buffer_size);
  fImpl->writing = true;
  fImpl->parts.restore(*this);  // before the trees are written
  const Int_t bytes = TMemFile::Write(nullptr, option, buffer_size);
  fImpl->writing = false;
  // ROOT counts what is attached; what else was written is in the file, too.
  if (bytes <= 0 && !has_content(*this) && !TestBit(kWriteError)) return bytes;
  return HandOverAndReset() ? bytes : -1;
}

Int_t TScifFile::Write(const char* name, Int_t option, Int_t buffer_size) const {
  Error("Write const", "a const file should not be written; it is, all the same");
  return const_cast<TScifFile*>(this)->Write(name, option, buffer_size);
}

/// A tree's header is read, by the process beside this one, as soon as it is written: it is not worth compressing. Its
/// baskets are as they always are.
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
    // ROOT only computes where in the object a TObject is.
    const void* const base = const_cast<TClass*>(type)->DynamicCast(TObject::Class(), const_cast<void*>(object));
    fImpl->whole.note(*this, *mother, *static_cast<const TObject*>(base), name);
  }
  return TMemFile::CreateKey(mother, object, type, name, buffer_size);
}

void TScifFile::WriteKeys() {
  if (fImpl != nullptr) fImpl->whole.write(*this);
  TMemFile::WriteKeys();
}

/// ROOT calls it when a tree has saved itself, which is where all of them can be handed over.
void TScifFile::WriteStreamerInfo() {
  WriteClasses();
  if (fImpl != nullptr && fImpl->parts.asked() && !fImpl->writing) HandOverTrees();
}

void TScifFile::WriteClasses() {
  if (fImpl == nullptr || !IsWritable() || fClassIndex == nullptr || fSeekInfo != 0) {
    return TMemFile::WriteStreamerInfo();
  }
  // The first number says whether there are any that are new.
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

/// Keys that were written are in the file when its key lists and its header are, too.
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
  // Written since they were told to save themselves.
  if (!wherry::root::holds_only_trees(*this)) return fImpl->parts.restore(*this);
  if (!std::exchange(fImpl->told_of_parts, true)) {
    Info("WriteStreamerInfo", "more than the server takes at once: trees are handed over in parts, and go on empty");
  }
  // Before they are written: how they save themselves is part of them.
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
    if (TestBit(kWriteError)) throw std::runtime_error("the file is incomplete, and is not handed over");
    fImpl->hand_over(static_cast<std::size_t>(GetEND()));
    return kTRUE;
  } catch (const std::exception& error) {
    Fail("Write", error.what());
    return kFALSE;
  }
}

Bool_t TScifFile::Wait() {
  if (fImpl == nullptr) return !TestBit(kWriteError);
  if (fImpl->is_inherited()) return kFALSE;  // what the server says is for the parent
  try {
    fImpl->client.wait();
    return kTRUE;
  } catch (const std::exception& error) {
    Fail("Wait", error.what());
    return kFALSE;
  }
}

/// As TFile does when a write fails.
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
  // The static object that holds the file may have been complete only after it was opened.
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
