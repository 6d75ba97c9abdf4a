// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/merged_file.hpp"

#include <TBufferFile.h>
#include <TClass.h>
#include <TFileMergeInfo.h>
#include <TKey.h>
#include <TList.h>
#include <TTree.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "adapters/root/merge/ntuple_check.hpp"
#include "adapters/root/merge/root_errors.hpp"
#include "adapters/root/merge/shapes.hpp"

namespace wherry::merge {

namespace {

// Workers of one program write the same one, or a few. More are copied each time.
constexpr std::size_t kMostStreamerInfos = 64;

/// What an object is, all in one string: of those that cannot be merged, equal ones are kept once.
std::string identity_of(const std::string& path, TClass& type, void* object) {
  TBufferFile buffer(TBuffer::kWrite);
  type.Streamer(object, buffer);
  return path + '\0' + type.GetName() + '\0' + std::string(buffer.Buffer(), static_cast<std::size_t>(buffer.Length()));
}

std::vector<Shape> shapes_of(Source& source) {
  std::map<std::string, Shape> shapes;
  for (const auto& [path, kind] : source.kinds) shapes[path] = {path, kind};
  for (const SourceTree& from : source.trees) shapes[from.place.path()].tree = from.tree.get();
  for (const SourceObject& from : source.objects) shapes[from.place.path()].type = from.type;
  for (const SourceNTuple& from : source.ntuples) shapes["/" + from.name].fields = from.fields;
  std::vector<Shape> all;
  for (auto& [path, shape] : shapes) all.push_back(std::move(shape));
  return all;
}

/// What a newer object of this name has replaced.
void delete_older_cycles(TDirectory& directory, const char* name) {
  std::vector<TKey*> older;
  for (TObject* object : *directory.GetListOfKeys()) {
    auto* key = static_cast<TKey*>(object);
    if (std::string_view(key->GetName()) == name && key != directory.GetKey(name)) older.push_back(key);
  }
  for (TKey* key : older) {
    key->Delete();
    delete key;
  }
}

}  // namespace

MergedFile::MergedFile(std::string path, MergedFileOptions options) : path_(std::move(path)), options_(options) {
  if (auto sequences = Ledger::recover(path_)) {
    sequences_ = std::move(*sequences);
    open_existing();
    remember(*file_, "");
    tell_shapes();
  }
}

MergedFile::~MergedFile() {
  if (agreed_) options_.shapes->give_up(this);
}

void MergedFile::open_existing() {
  const TDirectory::TContext context;
  file_ = std::make_unique<OutputFile>(path_);
  ledger_ = std::make_unique<Ledger>(path_, Commit{static_cast<std::uint64_t>(file_->GetEND()), {}, sequences_},
                                     options_.durable);
}

// The older file goes before the ledger comes: a ledger is never found beside a file that it does not belong to. One
// that has come since this was made is another process's. Two outputs may have one hidden name.
void MergedFile::open_new(int compression) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  if (Ledger::recover(path_)) throw std::runtime_error(path_ + " was begun by another process meanwhile");
  const TDirectory::TContext context;
  file_ = std::make_unique<OutputFile>(path_, compression);
  file_->begin_commit();
  file_->apply(file_->collect({}));
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) throw std::system_error(errno, std::system_category(), path_);
  ledger_ = std::make_unique<Ledger>(path_, Commit{static_cast<std::uint64_t>(file_->GetEND()), {}, sequences_},
                                     options_.durable);
  file_->publish();
}

TDirectory* MergedFile::directory_of(const Place& place, bool make) {
  TDirectory* directory = file_.get();
  std::size_t begin = 1;
  while (begin < place.directory.size() && directory != nullptr) {
    const std::size_t end = std::min(place.directory.find('/', begin), place.directory.size());
    const std::string name = place.directory.substr(begin, end - begin);
    auto* next = dynamic_cast<TDirectory*>(directory->GetList()->FindObject(name.c_str()));
    if (next == nullptr && directory->GetKey(name.c_str()) != nullptr) next = directory->GetDirectory(name.c_str());
    if (next == nullptr && make) {
      next = directory->mkdir(name.c_str(), end == place.directory.size() ? place.directory_title.c_str() : "");
      modified_.insert(directory);
      modified_.insert(next);
    }
    directory = next;
    begin = end + 1;
  }
  return directory;
}

TObject* MergedFile::stored(const Place& place) {
  TDirectory* directory = directory_of(place, false);
  TKey* key = directory == nullptr ? nullptr : directory->GetKey(place.name.c_str());
  if (key == nullptr || TClass::GetClass(key->GetClassName())->InheritsFrom(TDirectory::Class())) return nullptr;
  return key->ReadObj();
}

MergedFile::Tree* MergedFile::known_tree(const Place& place) {
  const auto known = trees_.find(place.path());
  if (known != trees_.end()) return &known->second;
  auto* tree = dynamic_cast<TTree*>(stored(place));
  if (tree == nullptr) return nullptr;
  return &trees_.emplace(place.path(), Tree{tree, directory_of(place, false), false}).first->second;
}

MergedFile::Object* MergedFile::known_object(const Place& place) {
  const auto known = objects_.find(place.path());
  if (known != objects_.end()) return &known->second;
  std::unique_ptr<TObject> object(stored(place));
  if (!object) return nullptr;
  TClass* type = object->IsA();
  if (const auto add = type->GetDirectoryAutoAdd()) add(object.get(), nullptr);
  Object entry{std::move(object), type, directory_of(place, false), {}, false};
  return &objects_.emplace(place.path(), std::move(entry)).first->second;
}

Way MergedFile::way_of(Source& source, TTree& from, TTree& to, std::string* reason) const {
  const Way way = way_between(from, to, reason);
  const bool recompress = options_.compression >= 0 && source.compression() != options_.compression;
  return way == Way::baskets && recompress ? Way::entries : way;
}

// Of an output that is gone on with. What another knows otherwise, with which this one was begun, is found when the two
// are joined.
void MergedFile::tell_shapes() {
  if (!options_.shapes) return;
  for (const auto& [path, kind] : kinds_) {
    const std::size_t name = path.rfind('/');
    const Place place{path.substr(0, name), "", path.substr(name + 1)};
    Shape shape{path, kind};
    if (const Tree* tree = kind == Kind::tree ? known_tree(place) : nullptr) shape.tree = tree->tree;
    if (const Object* object = kind == Kind::object ? known_object(place) : nullptr) shape.type = object->type;
    if (kind == Kind::ntuple) shape.fields = ntuple_fields_[place.name];
    options_.shapes->agree(this, {shape});
  }
  options_.shapes->keep(this);
}

std::string MergedFile::objection(Source& source) {
  if (!source.error().empty()) return source.error();
  std::string reason = file_ ? difference(source) : "";
  const auto known = [this](const auto& entry) { return kinds_.contains(entry.first); };
  if (reason.empty() && options_.shapes && !std::all_of(source.kinds.begin(), source.kinds.end(), known)) {
    agreed_ = true;
    reason = options_.shapes->agree(this, shapes_of(source));
  }
  return reason;
}

std::string MergedFile::difference(Source& source) {
  for (const auto& [path, kind] : source.kinds) {
    const auto there = kinds_.find(path);
    if (there != kinds_.end() && there->second != kind) {
      return path + ": is " + to_string(there->second) + " in the output, not " + to_string(kind);
    }
  }
  std::string reason;
  for (SourceTree& from : source.trees) {
    Tree* to = known_tree(from.place);
    if (to == nullptr) continue;
    // A tree that has been appended before has the same branches still.
    if (from.way == Way::none) from.way = way_of(source, *from.tree, *to->tree, &reason);
    if (from.way == Way::none) return reason;
  }
  for (const SourceObject& from : source.objects) {
    const Object* to = known_object(from.place);
    if (to != nullptr && to->type != from.type) {
      return from.place.name + ": is a " + to->type->GetName() + " in the output, not a " + from.type->GetName();
    }
  }
  for (const SourceNTuple& from : source.ntuples) {
    const auto there = ntuple_fields_.find(from.name);
    if (there != ntuple_fields_.end() && there->second != from.fields) {
      return "RNTuple " + from.name + ": has other fields in the output";
    }
  }
  return {};
}

void MergedFile::begin(const Source& first) {
  const TDirectory::TContext context;
  if (!file_) open_new(options_.compression >= 0 ? options_.compression : first.compression());
}

void MergedFile::append(Source& source, const Sequences& last) {
  begin(source);
  const TDirectory::TContext context;
  const RootErrors errors;
  std::string problem;
  try {
    if (!append_all(source)) problem = "a tree could not be read to its end";
  } catch (const std::runtime_error& fatal) {
    problem = fatal.what();
  }
  if (problem.empty()) problem = errors.first();
  if (file_->failed()) throw std::runtime_error(path_ + ": writing failed");
  if (!problem.empty()) throw FileRefused(problem);
  for (const auto& [worker, sequence] : last) appended_[worker] = sequence;
}

/// False if something could not be read.
bool MergedFile::append_all(Source& source) {
  const auto infos = source.streamer_infos();
  const std::string record(reinterpret_cast<const char*>(infos.data()), infos.size());
  const bool new_infos = !streamer_infos_.contains(record);
  bool complete = true;
  for (SourceTree& from : source.trees) complete = append_tree(source, from, new_infos) && complete;
  for (SourceObject& from : source.objects) append_object(from);
  for (SourceKey& from : source.keys) append_key(from);
  for (const SourceNTuple& from : source.ntuples) {
    NTuple& ntuple = ntuples_[from.name];
    if (ntuple.key == nullptr) ntuple.key = from.key;
    ntuple.files.push_back(&source.file());
    ntuple_fields_.emplace(from.name, from.fields);
  }
  kinds_.insert(source.kinds.begin(), source.kinds.end());
  if (new_infos && !source.trees.empty() && streamer_infos_.size() < kMostStreamerInfos) streamer_infos_.insert(record);
  return complete;
}

bool MergedFile::append_tree(Source& source, SourceTree& from, bool streamer_infos) {
  Tree* to = known_tree(from.place);
  if (to == nullptr) {
    TDirectory* directory = directory_of(from.place, true);
    TTree* tree = make_like(*from.tree, directory, options_.compression);
    if (tree == nullptr) return false;
    to = &trees_.emplace(from.place.path(), Tree{tree, directory, false}).first->second;
    from.way = way_of(source, *from.tree, *tree, nullptr);
  }
  to->changed = true;
  return merge::append(*from.tree, *to->tree, from.way, streamer_infos);
}

void MergedFile::append_object(SourceObject& from) {
  Object* to = known_object(from.place);
  if (to == nullptr) {
    Object entry{std::move(from.object), from.type, directory_of(from.place, true), {}, true};
    objects_.emplace(from.place.path(), std::move(entry));
    return;
  }
  to->changed = true;
  to->inputs.push_back(from.object.get());
}

void MergedFile::append_key(SourceKey& from) {
  TClass* type = TClass::GetClass(from.key->GetClassName());
  void* object = from.key->ReadObjectAny(type);
  if (object == nullptr) return;
  if (kept_.insert(identity_of(from.place.path(), *type, object)).second) {
    TDirectory* directory = directory_of(from.place, true);
    directory->WriteObjectAny(object, type, from.place.name.c_str());
    modified_.insert(directory);
  }
  type->Destructor(object);
}

// Of an output that is gone on with.
void MergedFile::remember(TDirectory& directory, const std::string& path) {
  for (TObject* entry : *directory.GetListOfKeys()) {
    auto* key = static_cast<TKey*>(entry);
    TClass* type = TClass::GetClass(key->GetClassName());
    if (type == nullptr) continue;
    const std::string name = path + "/" + key->GetName();
    const Kind kind = kind_of(*type);
    kinds_.emplace(name, kind);
    if (kind == Kind::directory) {
      auto* inner = directory.GetDirectory(key->GetName());
      if (inner != nullptr) remember(*inner, name);
    } else if (kind == Kind::ntuple) {
      ntuple_fields_[key->GetName()] = look_at_ntuple(*key, {}).fields;
    } else if (kind == Kind::kept) {
      void* object = key->ReadObjectAny(type);
      if (object == nullptr) continue;
      kept_.insert(identity_of(name, *type, object));
      type->Destructor(object);
    }
  }
}

std::string MergedFile::merge_objects() {
  std::string wrong;
  for (auto& [path, entry] : objects_) {
    if (entry.inputs.empty()) continue;
    TList inputs;
    for (TObject* input : entry.inputs) inputs.Add(input);
    entry.inputs.clear();
    TFileMergeInfo info(entry.directory);
    if (entry.type->GetMerge()(entry.object.get(), &inputs, &info) < 0) wrong = path + " could not be merged";
    inputs.Clear("nodelete");
  }
  return wrong;
}

// ROOT's function wants the key, the output and the inputs, and appends to what the output has under that name.
void MergedFile::merge_ntuples(const RootErrors& errors) {
  for (auto& [name, ntuple] : ntuples_) {
    TClass* type = TClass::GetClass(ntuple.key->GetClassName());
    TList data;
    data.Add(ntuple.key);
    data.Add(file_.get());
    for (TFile* file : ntuple.files) data.Add(file);
    TFileMergeInfo info(file_.get());
    void* anchor = ntuple.key->ReadObjectAny(type);
    const bool merged = anchor != nullptr && type->GetMerge()(anchor, &data, &info) >= 0;
    type->Destructor(anchor);
    data.Clear("nodelete");
    if (!merged) throw FileRefused("RNTuple " + name + " could not be merged: " + errors.first());
    delete_older_cycles(*file_, name.c_str());
  }
  ntuples_.clear();
}

// A tree's header names all its baskets. Written with each batch, and replaced by the next, it is not worth compressing
// before the last.
void MergedFile::write_changed() {
  const int compression = file_->GetCompressionSettings();
  if (!closing_) file_->SetCompressionSettings(0);
  for (auto& [path, entry] : trees_) {
    if (!std::exchange(entry.changed, false)) continue;
    const TDirectory::TContext context(entry.directory);
    entry.tree->Write(nullptr, TObject::kOverwrite);
    modified_.insert(entry.directory);
  }
  file_->SetCompressionSettings(compression);
  for (auto& [path, entry] : objects_) {
    if (!std::exchange(entry.changed, false)) continue;
    entry.directory->WriteTObject(entry.object.get(), entry.object->GetName(), "overwrite");
    modified_.insert(entry.directory);
  }
}

std::string MergedFile::commit(Sums sums) {
  if (appended_.empty() && !closing_) return {};
  const TDirectory::TContext context;
  const RootErrors errors;
  const std::string wrong = merge_objects();
  merge_ntuples(errors);
  const std::string problem = wrong.empty() ? errors.first() : wrong;
  if (sums == Sums::all && !problem.empty()) throw std::runtime_error(problem);
  file_->begin_commit();
  write_changed();
  const auto patches = file_->collect({modified_.begin(), modified_.end()});
  modified_.clear();
  if (options_.durable) file_->synchronize();
  ledger_->append({static_cast<std::uint64_t>(file_->GetEND()), patches, appended_});
  file_->apply(patches);
  if (std::exchange(agreed_, false)) options_.shapes->keep(this);
  for (const auto& [worker, sequence] : appended_) sequences_[worker] = sequence;
  appended_.clear();
  return wrong.empty() ? errors.first() : wrong;
}

void MergedFile::close() {
  if (!file_) open_new(options_.compression >= 0 ? options_.compression : 1);
  closing_ = true;
  for (auto& [path, entry] : trees_) entry.changed = true;
  commit();
  if (options_.durable) file_->synchronize();
  objects_.clear();
  trees_.clear();
  file_.reset();
  ledger_->remove();
  ledger_.reset();
}

}  // namespace wherry::merge
