// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/read/source.hpp"

#include <TClass.h>
#include <TDirectory.h>
#include <TKey.h>
#include <exception>
#include <functional>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "adapters/root/layout/whole_objects.hpp"
#include "adapters/root/merge/check/image_parts.hpp"
#include "adapters/root/merge/read/branches.hpp"
#include "adapters/root/merge/read/ntuple_check.hpp"
#include "adapters/root/merge/read/root_errors.hpp"

namespace wherry::merge {

namespace {

// Limit of nested directories: a directory of a damaged file may contain itself.
constexpr int kDeepest = 64;

// Limit of ROOT's errors for one file. An array of random data may have two billion elements, with an error each. A
// valid tree has one error for each class that ROOT does not know.
constexpr std::size_t kMostErrors = 100000;

/// Keeps ROOT from reading the descriptions of classes when it opens a file. The next file of the worker has the same
/// ones, and looking them up costs ROOT as much as all the rest. The switch applies to the whole process. It is off
/// only for a moment, because other threads may open files meanwhile.
class WithoutStreamerInfos {
 public:
  WithoutStreamerInfos() {
    const std::lock_guard lock(mutex);
    if (users++ > 0) return;
    before = TFile::GetReadStreamerInfo();
    TFile::SetReadStreamerInfo(kFALSE);
  }
  WithoutStreamerInfos(const WithoutStreamerInfos&) = delete;
  WithoutStreamerInfos& operator=(const WithoutStreamerInfos&) = delete;
  ~WithoutStreamerInfos() {
    const std::lock_guard lock(mutex);
    if (--users == 0) TFile::SetReadStreamerInfo(before);
  }

 private:
  static inline std::mutex mutex;
  static inline int users = 0;
  static inline bool before = true;
};

/// Makes ROOT read the descriptions of classes if they are new. Holds a lock meanwhile, so that a thread with the same
/// descriptions waits until ROOT knows them.
void read_if_new(TFile& file, std::span<const std::byte> streamer_infos) {
  // Records that are remembered; others are read each time.
  constexpr std::size_t kMost = 64;
  static std::mutex mutex;
  static std::set<std::string, std::less<>> known;
  const std::string_view record(reinterpret_cast<const char*>(streamer_infos.data()), streamer_infos.size());
  const std::lock_guard lock(mutex);
  if (record.empty() || known.contains(record)) return;
  file.ReadStreamerInfo();
  if (known.size() < kMost) known.emplace(record);
}

/// Whether image_check.hpp checks directories of this class. It does not check derived classes, such as a TFile in a
/// file.
bool is_checked_directory(const TClass& type) {
  const std::string_view name = type.GetName();
  return name == "TDirectory" || name == "TDirectoryFile";
}

/// Whether the class is a TChain: a tree without its own entries. Calls to it open the files that it names, if they
/// exist.
bool is_list_of_files(const TClass& type) { return type.InheritsFrom("TChain"); }

std::string reserved(const std::string& name) {
  return "/" + name + ": outputs use this name until they are complete; give it another, or put it into a directory";
}

std::unique_ptr<ViewedFile> open(std::span<const std::byte> bytes) {
  const WithoutStreamerInfos without;
  return std::make_unique<ViewedFile>(bytes);
}

}  // namespace

Kind kind_of(TClass& type) {
  if (type.InheritsFrom(TDirectory::Class())) return Kind::directory;
  if (type.InheritsFrom(TTree::Class())) return is_list_of_files(type) ? Kind::kept : Kind::tree;
  if (std::string_view(type.GetName()) == "ROOT::RNTuple") return Kind::ntuple;
  return type.IsTObject() && type.GetMerge() != nullptr ? Kind::object : Kind::kept;
}

const char* to_string(Kind kind) {
  constexpr const char* kNames[] = {"a directory", "a tree", "an object to add up", "an RNTuple", "an object to keep"};
  return kNames[static_cast<std::size_t>(kind)];
}

void take_out_of_directory(TObject& object) {
  if (const auto add = object.IsA()->GetDirectoryAutoAdd()) add(&object, nullptr);
}

Source::Source(std::span<const std::byte> bytes, Origin origin) : bytes_(bytes), origin_(origin) {
  const TDirectory::TContext context;
  const RootErrors errors(kMostErrors);
  try {
    file_ = open(bytes);
    if (file_->IsZombie()) {
      error_ = "not a ROOT file";
    } else if (file_->TestBit(TFile::kRecovered)) {
      error_ = "the file was not closed";
    } else {
      read_if_new(*file_, streamer_infos());
      read();
    }
  } catch (const std::exception& problem) {
    error_ = problem.what();
  }
  if (error_.empty()) {
    warnings_.insert(warnings_.end(), errors.messages().begin(), errors.messages().end());
  } else if (!errors.first().empty()) {
    error_ += " (" + errors.first() + ")";
  }
}

Source::~Source() {
  // Destroys the objects before the file to which they refer.
  const TDirectory::TContext context;
  trees.clear();
  objects.clear();
  file_.reset();
}

void Source::become(std::span<const std::byte> bytes) {
  bytes_ = bytes;
  error_.clear();
  warnings_.clear();
  classes_.reset();
  try {
    const Header header = read_header(bytes);
    file_->turn_to(bytes, static_cast<Long64_t>(header.info_seek), static_cast<Int_t>(header.info_bytes));
    for (const SourceTree& tree : trees) {
      if (error_.empty()) error_ = wrong_baskets(*tree.tree, bytes);
    }
  } catch (const Fault& problem) {
    error_ = problem.what();
  }
}

std::span<const std::byte> Source::streamer_infos() const {
  const auto seek = static_cast<std::size_t>(file_->GetSeekInfo());
  const auto size = static_cast<std::size_t>(file_->GetNbytesInfo());
  if (seek > bytes_.size() || size > bytes_.size() - seek) return {};
  // Without the key, which contains the time of writing.
  constexpr std::size_t kKeyLengthAt = 14;
  if (size < kKeyLengthAt + 2) return {};
  const auto record = bytes_.subspan(seek, size);
  const std::size_t key = static_cast<std::size_t>(record[kKeyLengthAt]) << 8 | static_cast<std::size_t>(record[15]);
  return key <= size ? record.subspan(key) : std::span<const std::byte>{};
}

const ClassList::Classes& Source::classes() {
  if (!classes_) classes_ = ClassList::read(*file_);
  return *classes_;
}

void Source::read() { read_directory(*file_, "", 0); }

void Source::read_directory(TDirectory& directory, const std::string& path, int depth) {
  if (depth > kDeepest) {
    error_ = "directories deeper than " + std::to_string(kDeepest);
    return;
  }
  // Cycles of one name follow each other, the newest first. Older cycles are needed only of objects that cannot be
  // merged, in the order in which they were written.
  std::vector<TKey*> keys_there;
  for (TObject* object : *directory.GetListOfKeys()) keys_there.push_back(static_cast<TKey*>(object));
  for (std::size_t first = 0, last = 0; first < keys_there.size(); first = last) {
    const auto same_name = [&](std::size_t i) {
      return std::string_view(keys_there[i]->GetName()) == keys_there[first]->GetName();
    };
    while (last < keys_there.size() && same_name(last)) ++last;
    for (std::size_t i = last; i > first; --i) {
      if (error_.empty()) read_key(*keys_there[i - 1], path, i - 1 == first, depth);
    }
  }
}

void Source::read_key(TKey& key, const std::string& path, bool newest, int depth) {
  const Place place{path, key.GetName()};
  TClass* type = TClass::GetClass(key.GetClassName());
  if (type == nullptr) {
    warnings_.push_back(place.path() + " is left out: its class " + key.GetClassName() + " is not known");
    return;
  }
  if (place.path() == kPartsDirectory) {
    if (origin_ == Origin::worker) error_ = reserved(place.name);
    return;
  }
  if (path.empty() && place.name == layout::kRootWholeObjects) return read_whole(key);
  const Kind kind = kind_of(*type);
  if (std::string_view(type->GetName()) == "TProcessID") {
    key.ReadObj();  // the references (TRef) in the trees depend on it
    return;
  }
  if (!newest && kind != Kind::kept) return;
  if (kind == Kind::directory && !is_checked_directory(*type)) {
    error_ = place.name + ": is a " + type->GetName() + ", which is not supported as a directory";
    return;
  }
  const auto [known, fresh] = kinds.emplace(place.path(), kind);
  if (known->second != kind) {
    error_ = place.name + ": the file has objects of different kinds with this name";
    return;
  }
  if (fresh) order.push_back(place.path());
  switch (kind) {
    case Kind::directory:
      return read_subdirectory(key, place, depth);
    case Kind::tree:
      return read_tree(key, place);
    case Kind::object:
      return read_object(key, *type, place);
    case Kind::ntuple:
      return read_ntuple(key, place);
    case Kind::kept:
      keys.push_back({place, &key});
  }
}

void Source::read_whole(TKey& key) {
  const std::unique_ptr<std::vector<std::string>> paths(key.ReadObject<std::vector<std::string>>());
  if (paths) {
    whole.insert(paths->begin(), paths->end());
  } else {
    error_ = reserved(key.GetName());
  }
}

void Source::read_subdirectory(TKey& key, const Place& place, int depth) {
  auto* directory = dynamic_cast<TDirectory*>(key.ReadObj());
  if (directory == nullptr || place.name.empty() || place.name.find('/') != std::string::npos) {
    error_ = place.name + ": a directory that cannot be read";
  } else {
    directories.push_back({place.path(), directory->GetTitle()});
    read_directory(*directory, place.path(), depth + 1);
  }
}

void Source::read_ntuple(TKey& key, const Place& place) {
  if (!place.directory.empty()) {
    error_ = place.name + ": ROOT does not merge an RNTuple in a directory";
    return;
  }
  NTupleShape shape = look_at_ntuple(key, bytes_);
  error_ = std::move(shape.fault);
  ntuples.push_back({place.name, &key, std::move(shape.fields)});
}

void Source::read_tree(TKey& key, const Place& place) {
  TObject* object = key.ReadObj();
  auto* tree = dynamic_cast<TTree*>(object);
  if (tree == nullptr) {
    error_ = place.name + ": a tree that cannot be read";
    return;
  }
  error_ = wrong_baskets(*tree, bytes_);
  trees.push_back({place, std::unique_ptr<TTree>(tree)});
}

void Source::read_object(TKey& key, TClass& type, const Place& place) {
  std::unique_ptr<TObject> object(key.ReadObj());
  if (!object || object->IsA() != &type) {
    error_ = place.name + ": an object that cannot be read";
    return;
  }
  take_out_of_directory(*object);
  objects.push_back({place, &type, std::move(object)});
}

}  // namespace wherry::merge
