// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/output_file.hpp"

#include <TArrayC.h>
#include <TClass.h>
#include <TDirectoryFile.h>
#include <TFree.h>
#include <TInterpreter.h>
#include <TKey.h>
#include <TList.h>
#include <TObjString.h>
#include <TROOT.h>
#include <TSchemaRule.h>
#include <TSchemaRuleSet.h>
#include <TVirtualMutex.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
#include <stdexcept>
#include <system_error>

namespace wherry::merge {

namespace {
// Small writes are buffered: baskets of wide trees have a few hundred bytes, and a system call for each would cost more
// than the copy.
constexpr std::size_t kBuffer = std::size_t{256} << 10;
constexpr std::size_t kDirect = std::size_t{64} << 10;  // writes of at least this many bytes are not buffered
constexpr std::size_t kPage = 4096;
// Space reserved for commits, as a multiple of what one commit writes: its own bytes, those of the last one, and a
// reserve.
constexpr Long64_t kRoomForCommits = 4;
constexpr Long64_t kGap = 4;  // bytes of the gap after that space: only its length is written, as the file ends there
// ROOT extends the writable range of a large file in steps of this many bytes.
constexpr Long64_t kBeyondLarge = 1000000000;

/// Adds the rules by which classes with a dictionary convert objects of older versions.
void add_rules(const TList& infos, TList& rules) {
  std::set<TClass*> seen;
  for (TObject* object : infos) {
    TClass* type = static_cast<TStreamerInfo*>(object)->GetClass();
    if (type == nullptr || type->GetSchemaRules() == nullptr || !seen.insert(type).second) continue;
    for (TObject* rule : *type->GetSchemaRules()->GetRules()) {
      auto* text = new TObjString;
      static_cast<ROOT::TSchemaRule*>(rule)->AsString(text->String());
      rules.Add(text);
    }
  }
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : OutputFile(path, path, "UPDATE", 1) {}

OutputFile::OutputFile(const std::string& path, int compression)
    : OutputFile(path, Journal::hidden(path), "RECREATE", compression) {}

OutputFile::OutputFile(const std::string& path, const std::string& shown_as, const char* mode, int compression)
    : TFile(shown_as.c_str(), mode, "", compression), path_(path) {
  if (IsZombie() || !IsWritable()) throw std::runtime_error("cannot open " + path + " for writing");
  // Reads the streamer infos here, because another thread may have switched that off while TFile's constructor ran.
  if (fSeekInfo > 0) {
    ReadStreamerInfo();
    classes_.add(ClassList::read(*this));
    classes_.set_written();
  }
  hide_holes();
  end_ = fEND;
  position_ = ::lseek(fD, 0, SEEK_CUR);
  buffer_.reserve(kBuffer);
  ready_ = true;
  // Keeps a tree larger than ROOT's limit from continuing in a new file.
  SetBit(TFile::kCancelTTreeChangeRequest);
}

// Replaces the name in the first record, which contains it twice.
void OutputFile::write_name() {
  const std::string before = GetName();
  std::string page(kPage, '\0');
  const ssize_t got = ::pread(fD, page.data(), page.size(), 0);
  page.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  for (std::size_t at = page.find(before); at != std::string::npos; at = page.find(before)) {
    page.replace(at, before.size(), path_);
  }
  if (got < 0 || !write_at(page.data(), page.size(), 0)) throw std::system_error(errno, std::system_category(), path_);
}

void OutputFile::publish() {
  write_name();
  if (std::rename(GetName(), path_.c_str()) != 0) throw std::system_error(errno, std::system_category(), path_);
  SetName(path_.c_str());
  // The merger of RNTuples opens the output by this URL, to read its content.
  fUrl.SetUrl(path_.c_str(), kTRUE);
  fRealName = path_;
}

bool OutputFile::has_its_name() const {
  struct stat own{};
  struct stat named{};
  return ::fstat(fD, &own) == 0 && ::stat(GetName(), &named) == 0 && own.st_dev == named.st_dev &&
         own.st_ino == named.st_ino;
}

// Closes without writing: data that was not committed is not part of the file.
OutputFile::~OutputFile() {
  SetWritable(kFALSE);
  show_holes();
  Close();
}

// Shows ROOT the holes, and makes one if none is large enough for the commit.
//
// For every record, ROOT searches a list of free places from its beginning. The headers of each commit leave a place
// there that is too small for the next headers, so the list would grow. Therefore the holes are hidden between commits,
// and baskets always go to the end of the file. Commits get their own space, which grows with them.
void OutputFile::begin_commit() {
  show_holes();
  written_before_ = fBytesWrite;
  const Long64_t needed = written_by_last_ + written_by_last_ / 4;
  Long64_t free = 0;
  for (TObject* place : *fFree) {
    const auto* hole = static_cast<TFree*>(place);
    if (place != fFree->Last()) free = std::max(free, hole->GetLast() - hole->GetFirst() + 1);
  }
  if (free < needed && keeps_room_) make_hole(kRoomForCommits * needed);
}

Long64_t OutputFile::holes() const {
  Long64_t bytes = end_ - fEND;
  const auto count = [&bytes](const TObject* place) {
    const auto* hole = static_cast<const TFree*>(place);
    bytes += hole->GetLast() - hole->GetFirst() + 1;
  };
  for (const TObject* place : hidden_) count(place);
  for (const TObject* place : *fFree) {
    if (place != fFree->Last()) count(place);
  }
  return bytes;
}

void OutputFile::show_holes() {
  for (; !hidden_.empty(); hidden_.pop_back()) fFree->AddFirst(hidden_.back());
}

// Hides all free places but the last one, which is everything after the end of the file.
void OutputFile::hide_holes() {
  while (fFree->GetSize() > 1) hidden_.push_back(fFree->Remove(fFree->First()));
}

// Makes a hole at the end of the file. A gap after it keeps ROOT from joining it with the free space after the end.
void OutputFile::make_hole(Long64_t bytes) {
  const Long64_t first = fEND;
  auto* behind = static_cast<TFree*>(fFree->Last());
  auto* hole = new TFree;
  hole->SetFirst(first);
  hole->SetLast(first + bytes - 1);
  fFree->AddBefore(behind, hole);
  SetEND(first + bytes + kGap);
  behind->SetFirst(fEND);
  if (fEND > behind->GetLast()) behind->SetLast(behind->GetLast() + kBeyondLarge);
  write_gap(first, bytes);
  write_gap(first + bytes, kGap);
}

void OutputFile::write_gap(Long64_t first, Long64_t bytes) {
  const auto length = static_cast<std::uint32_t>(-bytes);
  std::array<char, sizeof length> buffer{};
  for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<char>(length >> (24 - 8 * i));
  Seek(first);
  WriteBuffer(buffer.data(), static_cast<Int_t>(buffer.size()));
}

std::vector<Patch> OutputFile::collect(const std::vector<TDirectory*>& modified) {
  WriteKeys();
  for (TDirectory* directory : modified) {
    if (directory != this) directory->WriteKeys();
  }
  WriteStreamerInfo();
  WriteFree();
  if (!flush() || failed()) throw std::runtime_error(std::string(GetName()) + ": writing failed");
  end_ = fEND;
  holding_ = true;
  held_.clear();
  for (TDirectory* directory : modified) {
    if (directory != this) directory->WriteDirHeader();
  }
  WriteDirHeader();
  WriteHeader();
  holding_ = false;
  join_first_page();
  return std::move(held_);
}

// Joins the patches in the first page, which contains the headers of the file and of its top directory, to one write.
// No signal interrupts it, so both headers change together. Without subdirectories, the file is therefore at one commit
// or the next at every moment.
void OutputFile::join_first_page() {
  std::array<std::byte, kPage> page{};
  const ssize_t got = ::pread(fD, page.data(), page.size(), 0);
  if (got < 0) throw std::system_error(errno, std::system_category(), GetName());
  std::size_t end = 0;
  std::vector<Patch> rest;
  for (Patch& patch : held_) {
    const std::size_t last = patch.offset + patch.bytes.size();
    if (last > static_cast<std::size_t>(got)) {
      rest.push_back(std::move(patch));
      continue;
    }
    std::copy(patch.bytes.begin(), patch.bytes.end(), page.begin() + static_cast<std::ptrdiff_t>(patch.offset));
    end = std::max(end, last);
  }
  rest.push_back({0, {page.begin(), page.begin() + static_cast<std::ptrdiff_t>(end)}});
  held_ = std::move(rest);
}

void OutputFile::synchronize() {
  if (::fdatasync(fD) != 0) throw std::system_error(errno, std::system_category(), GetName());
}

void OutputFile::apply(const std::vector<Patch>& patches) {
  for (const Patch& patch : patches) {
    if (!write_at(patch.bytes.data(), patch.bytes.size(), static_cast<std::int64_t>(patch.offset))) {
      throw std::system_error(errno, std::system_category(), GetName());
    }
  }
  for (const auto& [first, last] : replaced_) TFile::MakeFree(first, last);
  replaced_.clear();
  written_by_last_ = fBytesWrite - written_before_;
  hide_holes();
}

std::vector<TStreamerInfo*> OutputFile::tagged_classes() const {
  std::vector<TStreamerInfo*> tagged;
  R__LOCKGUARD(gInterpreterMutex);
  for (TObject* object : *gROOT->GetListOfStreamerInfo()) {
    auto* info = static_cast<TStreamerInfo*>(object);
    const int number = info == nullptr ? 0 : info->GetNumber();
    if (number > 0 && number < fClassIndex->fN && fClassIndex->fArray[number] != 0) tagged.push_back(info);
  }
  return tagged;
}

// Like TFile::WriteStreamerInfo, except for the list. The first element of the index is a flag for new classes; 2 keeps
// ROOT from recording the classes that are written here.
void OutputFile::WriteStreamerInfo() {
  if (fClassIndex == nullptr || !fWritable) return;
  if (fClassIndex->fArray[0] == 0 && !classes_.has_changed() && fSeekInfo != 0) return;
  SafeDelete(fInfoCache);
  TList list;
  for (TStreamerInfo* info : classes_.with(tagged_classes())) list.Add(info);
  TList rules;
  rules.SetOwner();
  rules.SetName("listOfRules");
  add_rules(list, rules);
  if (!rules.IsEmpty()) list.Add(&rules);
  fClassIndex->fArray[0] = 2;
  if (fSeekInfo != 0) MakeFree(fSeekInfo, fSeekInfo + fNbytesInfo - 1);
  TKey key(&list, "StreamerInfo", GetBestBuffer(), this);
  fKeys->Remove(&key);
  fSeekInfo = key.GetSeekKey();
  fNbytesInfo = key.GetNbytes();
  SumBuffer(key.GetObjlen());
  key.WriteFile(0);
  fClassIndex->fArray[0] = 0;
  classes_.set_written();
  list.Clear("nodelete");
}

Int_t OutputFile::Write(const char* /*name*/, Int_t /*option*/, Int_t /*buffer_size*/) { return 0; }
Int_t OutputFile::Write(const char* /*name*/, Int_t /*option*/, Int_t /*buffer_size*/) const { return 0; }

void OutputFile::MakeFree(Long64_t first, Long64_t last) {
  if (ready_) {
    replaced_.emplace_back(first, last);
  } else {
    TFile::MakeFree(first, last);
  }
}

Int_t OutputFile::SysWrite(Int_t fd, const void* buffer, Int_t length) {
  if (!ready_) return TFile::SysWrite(fd, buffer, length);
  const auto size = static_cast<std::size_t>(length);
  if (holding_) {
    const auto* first = static_cast<const std::byte*>(buffer);
    held_.push_back({static_cast<std::uint64_t>(position_), {first, first + size}});
    position_ += length;
    return length;
  }
  const bool follows = position_ == buffer_offset_ + static_cast<std::int64_t>(buffer_.size());
  if ((!follows || buffer_.size() + size > kBuffer) && !flush()) return -1;
  if (size >= kDirect) {
    if (!write_at(buffer, size, position_)) return -1;
  } else {
    if (buffer_.empty()) buffer_offset_ = position_;
    const auto* first = static_cast<const std::byte*>(buffer);
    buffer_.insert(buffer_.end(), first, first + size);
  }
  position_ += length;
  return length;
}

Int_t OutputFile::SysRead(Int_t fd, void* buffer, Int_t length) {
  if (!ready_) return TFile::SysRead(fd, buffer, length);
  if (!flush()) return -1;
  const ssize_t n = ::pread(fd, buffer, static_cast<std::size_t>(length), position_);
  if (n > 0) position_ += n;
  return static_cast<Int_t>(n);
}

Long64_t OutputFile::SysSeek(Int_t fd, Long64_t offset, Int_t whence) {
  if (!ready_) return TFile::SysSeek(fd, offset, whence);
  if (whence == SEEK_SET) {
    position_ = offset;
  } else if (whence == SEEK_CUR) {
    position_ += offset;
  } else {
    if (!flush()) return -1;
    position_ = ::lseek(fd, offset, SEEK_END);
  }
  return position_;
}

Int_t OutputFile::SysStat(Int_t fd, Long_t* id, Long64_t* size, Long_t* flags, Long_t* modtime) {
  if (ready_ && !flush()) return -1;
  return TFile::SysStat(fd, id, size, flags, modtime);
}

// Does nothing: TFile calls it after each header, which is too often. A durable commit calls `synchronize`.
Int_t OutputFile::SysSync(Int_t fd) { return ready_ ? 0 : TFile::SysSync(fd); }

bool OutputFile::flush() {
  if (buffer_.empty()) return !failed_;
  const bool written = write_at(buffer_.data(), buffer_.size(), buffer_offset_);
  buffer_.clear();
  return written;
}

bool OutputFile::write_at(const void* buffer, std::size_t length, std::int64_t offset) {
  const char* from = static_cast<const char*>(buffer);
  while (length > 0 && !failed_) {
    const ssize_t n = ::pwrite(fD, from, length, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      failed_ = true;
      return false;
    }
    from += n;
    offset += n;
    length -= static_cast<std::size_t>(n);
  }
  return !failed_;
}

}  // namespace wherry::merge
