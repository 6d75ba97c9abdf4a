// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/merged_file.hpp"

#include <TClass.h>
#include <TFileMergeInfo.h>
#include <TKey.h>
#include <TList.h>
#include <TTree.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "adapters/root/merge/commit/directory_lock.hpp"
#include "adapters/root/merge/identity.hpp"
#include "adapters/root/merge/read/ntuple_check.hpp"
#include "adapters/root/merge/read/root_errors.hpp"
#include "adapters/root/merge/shapes.hpp"
#include "adapters/root/merge/tree_index.hpp"

namespace wherry::merge {

namespace {

void add_classes(std::map<std::string, Shape>& shapes, const ClassList::Classes& classes) {
  for (const auto& [title, members] : ClassList::fixed(classes)) {
    shapes[title] = Shape{.path = title, .members = members};
  }
}

std::vector<Shape> shapes_of(Source& source) {
  std::map<std::string, Shape> shapes;
  for (const auto& [path, kind] : source.kinds) shapes[path] = {path, kind};
  for (const SourceTree& from : source.trees) shapes[from.place.path()].tree = from.tree.get();
  for (const SourceObject& from : source.objects) shapes[from.place.path()].type = from.type;
  for (const SourceNTuple& from : source.ntuples) shapes["/" + from.name].fields = from.fields;
  add_classes(shapes, source.classes());
  std::vector<Shape> all;
  for (auto& [path, shape] : shapes) all.push_back(std::move(shape));
  return all;
}

std::string joined(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) text += (text.empty() ? "" : ", ") + path;
  return text;
}

/// Deletes the objects of this name that a newer one has replaced.
void delete_older_cycles(TDirectory& directory, const char* name) {
  std::vector<TKey*> older;
  for (TObject* object : *directory.GetListOfKeys()) {
    auto* key = static_cast<TKey*>(object);
    if (std::string_view(key->GetName()) == name && key != directory.GetKey(name)) older.push_back(key);
  }
  for (TKey* key : older) delete_key(key);
}

}  // namespace

MergedFile::MergedFile(std::string path, MergedFileOptions options)
    : path_(std::move(path)), options_(std::move(options)) {
  if (auto sequences = Journal::recover(path_)) {
    sequences_ = std::move(*sequences);
    open_existing();
    remember(*file_, "");
    tell_shapes();
  }
}

MergedFile::MergedFile(std::string path, MergedFileOptions options, Copy /*hidden*/)
    : path_(std::move(path)), options_(std::move(options)), copy_(true) {}

MergedFile::~MergedFile() {
  if (agreed_) options_.shapes->give_up(this);
}

void MergedFile::open_existing() {
  const TDirectory::TContext context;
  use(std::make_unique<OutputFile>(path_));
  journal_ = std::make_unique<Journal>(path_, Commit{static_cast<std::uint64_t>(file_->GetEND()), {}, sequences_},
                                       options_.durable);
}

// Removes an older file before it creates the journal, so that a journal never lies beside a file to which it does not
// belong. A journal that was created after this object belongs to another process.
void MergedFile::open_new(int compression) {
  const DirectoryLock lock(path_);
  if (!copy_ && Journal::recover(path_)) throw std::runtime_error(path_ + " was begun by another process meanwhile");
  const TDirectory::TContext context;
  use(std::make_unique<OutputFile>(path_, compression));
  if (copy_) return;
  file_->begin_commit();
  file_->apply(file_->collect({}));
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) throw std::system_error(errno, std::system_category(), path_);
  journal_ = std::make_unique<Journal>(path_, Commit{static_cast<std::uint64_t>(file_->GetEND()), {}, sequences_},
                                       options_.durable);
  file_->publish();
}

void MergedFile::use(std::unique_ptr<OutputFile> file) {
  file_ = std::move(file);
  directories_ = std::make_unique<OutputDirectories>(*file_);
  sums_ = std::make_unique<Sums>(*directories_);
  if (options_.compact || copy_) file_->keep_no_room();
}

MergedFile::Tree* MergedFile::known_tree(const Place& place) {
  const auto known = trees_.find(place.path());
  if (known != trees_.end()) return &known->second;
  auto* tree = dynamic_cast<TTree*>(directories_->read(place));
  return tree == nullptr ? nullptr : keep(place, *tree);
}

MergedFile::Tree* MergedFile::keep(const Place& place, TTree& tree) {
  const Tree entry{&tree, directories_->find(place.directory), place.name, tree.GetAutoSave(), false};
  // With auto save, the tree would write its header, and that of its directory, between commits.
  tree.SetAutoSave(0);
  return &trees_.emplace(place.path(), entry).first->second;
}

Way MergedFile::way_of(Source& source, TTree& from, TTree& to, std::string* reason) const {
  const Way way = way_between(from, to, reason);
  const bool recompress = options_.compression >= 0 && source.compression() != options_.compression;
  return way == Way::baskets && recompress ? Way::entries : way;
}

// Tells the shared shapes what an existing output contains. If another output has a different shape, the join fails.
void MergedFile::tell_shapes() {
  if (!options_.shapes) return;
  for (const auto& [path, kind] : kinds_) {
    const std::size_t name = path.rfind('/');
    const Place place{path.substr(0, name), path.substr(name + 1)};
    Shape shape{path, kind};
    if (const Tree* tree = kind == Kind::tree ? known_tree(place) : nullptr) shape.tree = tree->tree;
    if (kind == Kind::object) shape.type = sums_->class_of(place);
    if (kind == Kind::ntuple) shape.fields = ntuple_fields_[place.name];
    options_.shapes->agree(this, {shape});
  }
  std::map<std::string, Shape> classes;
  add_classes(classes, ClassList::read(*file_));
  for (const auto& [title, shape] : classes) options_.shapes->agree(this, {shape});
  options_.shapes->keep(this);
}

std::string MergedFile::objection(Source& source) {
  if (!source.error().empty()) return source.error();
  std::string reason = file_ ? difference(source) : "";
  const auto known = [this](const auto& entry) { return kinds_.contains(entry.first); };
  const bool nothing_new = has_classes_of(source) && std::all_of(source.kinds.begin(), source.kinds.end(), known);
  if (reason.empty() && options_.shapes && !nothing_new) {
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
  if (!has_classes_of(source)) reason = file_->classes().objection(source.classes(), source.trees);
  if (!reason.empty()) return reason;
  for (SourceTree& from : source.trees) {
    Tree* to = known_tree(from.place);
    if (to == nullptr) continue;
    // A tree that was compared before (KnownShape) still has the same branches.
    if (from.way == Way::none) from.way = way_of(source, *from.tree, *to->tree, &reason);
    if (from.way == Way::none) return reason;
  }
  for (const SourceObject& from : source.objects) {
    const TClass* to = sums_->class_of(from.place);
    if (to != nullptr && to != from.type) {
      return from.place.name + ": is a " + to->GetName() + " in the output, not a " + from.type->GetName();
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
    if (!append_all(source, last.size() == 1 ? last.begin()->first : ""))
      problem = "a tree could not be read to its end";
  } catch (const std::runtime_error& fatal) {
    problem = fatal.what();
  }
  if (file_->failed()) throw std::runtime_error(path_ + ": writing failed");
  if (!problem.empty()) throw FileRefused(errors.first().empty() ? problem : problem + " (" + errors.first() + ")");
  warn(source.warnings());
  warn(errors.messages());
  for (const auto& [worker, sequence] : last) appended_[worker] = sequence;
}

/// Appends all objects of a file. False if a tree could not be read to its end.
bool MergedFile::append_all(Source& source, const std::string& worker) {
  take_classes(source);
  bool complete = true;
  for (const std::string& path : source.order) directories_->put_in_order(path);
  for (const auto& [path, title] : source.directories) {
    if (directories_->make(path, title.c_str()) == nullptr) throw std::runtime_error(path + " cannot be made");
  }
  for (SourceTree& from : source.trees) {
    complete = append_tree(source, from, worker) && complete;
  }
  for (SourceObject& from : source.objects) {
    if (source.whole.contains(from.place.path())) {
      sums_->replace(worker, from);
    } else {
      sums_->add(worker, from);
    }
  }
  for (SourceKey& from : source.keys) append_key(from);
  for (const SourceNTuple& from : source.ntuples) {
    NTuple& ntuple = ntuples_[from.name];
    if (ntuple.key == nullptr) ntuple.key = from.key;
    ntuple.files.push_back(&source.file());
    ntuple_fields_.emplace(from.name, from.fields);
  }
  kinds_.insert(source.kinds.begin(), source.kinds.end());
  return complete;
}

MergedFile::Tree* MergedFile::tree_for(Source& source, SourceTree& from) {
  Tree* to = known_tree(from.place);
  if (to == nullptr) {
    TTree* tree = make_like(*from.tree, directories_->find(from.place.directory), options_.compression);
    if (tree == nullptr) return nullptr;
    to = keep(from.place, *tree);
    from.way = way_of(source, *from.tree, *tree, nullptr);
  }
  note_index(*from.tree, *to->tree);
  to->changed = true;
  return to;
}

// A tree that is not reset after each file contains its previous entries, and perhaps more: only the new ones are
// appended. That also applies to the first file after which the worker resets the tree.
bool MergedFile::append_tree(Source& source, SourceTree& from, const std::string& worker) {
  const std::string path = from.place.path();
  const bool whole = source.whole.contains(path);
  const Long64_t before = sums_->parts().entries(worker, path);
  const Long64_t entries = from.tree->GetEntries();
  if (entries < before) {
    throw std::runtime_error("tree " + path +
                             " has fewer entries than when it was written before; entries that were removed from a" +
                             " tree that is not attached to its file cannot be removed from the output");
  }
  if (whole) sums_->parts().set_entries(worker, path, entries);
  if (!whole && before > 0) sums_->parts().drop_entries(worker, path);
  Tree* to = tree_for(source, from);
  if (to == nullptr) return false;
  if (before > 0 || from.way == Way::entries) require_readable_objects();
  if (before > 0) return append_entries(*from.tree, *to->tree, before);
  return merge::append(*from.tree, *to->tree, from.way);
}

void MergedFile::append_key(SourceKey& from) {
  TClass* type = TClass::GetClass(from.key->GetClassName());
  if (!type->IsLoaded()) require_readable_objects();
  void* object = from.key->ReadObjectAny(type);
  if (object == nullptr) {
    warnings_.push_back(from.place.path() + " is left out: it cannot be read");
    return;
  }
  if (kept_.insert(identity_of(from.place.path(), *type, object)).second) {
    TDirectory* directory = directories_->find(from.place.directory);
    // WriteTObject gives the key the title of the object.
    auto* const named =
        static_cast<TObject*>(type->IsTObject() ? type->DynamicCast(TObject::Class(), object) : nullptr);
    if (named != nullptr) {
      directory->WriteTObject(named, from.place.name.c_str());
    } else {
      directory->WriteObjectAny(object, type, from.place.name.c_str());
    }
    directories_->change(directory);
  }
  type->Destructor(object);
}

// Reads what an existing output contains, to continue it.
void MergedFile::remember(TDirectory& directory, const std::string& path) {
  for (TObject* entry : *directory.GetListOfKeys()) {
    auto* key = static_cast<TKey*>(entry);
    TClass* type = TClass::GetClass(key->GetClassName());
    if (type == nullptr) continue;
    const std::string name = path + "/" + key->GetName();
    if (name == kPartsDirectory) continue;
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

// ROOT's merge function takes the key, the output and the inputs. It appends to the RNTuple of that name in the output.
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
    directories_->change(file_.get());
  }
  ntuples_.clear();
}

// Writes the headers of the trees. A header refers to all baskets of its tree. It is written with each batch and
// replaced by the next, so compressing it does not pay before the last one.
void MergedFile::write_trees() {
  const int compression = file_->GetCompressionSettings();
  if (!closing_ && !options_.compact) file_->SetCompressionSettings(0);
  for (auto& [path, entry] : trees_) {
    if (!std::exchange(entry.changed, false)) continue;
    const TDirectory::TContext context(entry.directory);
    entry.tree->SetAutoSave(entry.auto_save);
    entry.tree->Write(entry.name.c_str(), TObject::kOverwrite);
    entry.tree->SetAutoSave(0);
    directories_->change(entry.directory);
  }
  file_->SetCompressionSettings(compression);
}

void MergedFile::commit(AddUp add_up) {
  make_commit(add_up);
  if (!options_.compact || closing_ || !file_ || !has_too_many_holes() || !write_anew()) return;
  forget();
  use(std::make_unique<OutputFile>(path_));
}

void MergedFile::make_commit(AddUp add_up) {
  if (appended_.empty() && !closing_) return;
  const TDirectory::TContext context;
  const RootErrors errors;
  const std::vector<std::string> wrong = sums_->merge(errors);
  const std::string problem = wrong.empty() ? errors.first() : joined(wrong) + " could not be added up";
  if (add_up == AddUp::all && !problem.empty()) throw std::runtime_error(problem);
  merge_ntuples(errors);
  file_->begin_commit();
  write_trees();
  sums_->write(!closing_);
  const auto patches = file_->collect(directories_->take_changed());
  if (options_.durable) file_->synchronize();
  if (journal_) journal_->append({static_cast<std::uint64_t>(file_->GetEND()), patches, appended_});
  file_->apply(patches);
  if (std::exchange(agreed_, false)) options_.shapes->keep(this);
  for (const auto& [worker, sequence] : appended_) sequences_[worker] = sequence;
  appended_.clear();
  not_added_.insert(wrong.begin(), wrong.end());
  for (const std::string& path : wrong) warnings_.push_back(path + " could not be added up and is incomplete");
  warn(errors.messages());
}

}  // namespace wherry::merge
