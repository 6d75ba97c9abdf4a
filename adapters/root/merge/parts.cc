// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/parts.hpp"

#include <TClass.h>
#include <TDirectory.h>
#include <TFile.h>
#include <TKey.h>
#include <TList.h>
#include <TParameter.h>
#include <utility>

#include "adapters/root/merge/add_up.hpp"
#include "adapters/root/merge/output_directories.hpp"

namespace wherry::merge {

namespace {

// Prefix of a tree's path, for its number of entries.
constexpr std::string_view kEntries = "entries";

}  // namespace

// Owners. The prefix kOf keeps every worker's name distinct from kRest.
const std::string Parts::kRest = "rest";
const std::string Parts::kOf = "of ";

TObject* Parts::find(const std::string& owner, const std::string& path) const {
  const auto objects = owners_.find(owner);
  if (objects == owners_.end()) return nullptr;
  const auto object = objects->second.find(path);
  return object == objects->second.end() ? nullptr : object->second.get();
}

void Parts::keep(const std::string& owner, const std::string& path, std::unique_ptr<TObject> object) {
  owners_[owner][path] = std::move(object);
  paths_.insert(path);
  changed_.insert(owner);
}

void Parts::drop(const std::string& worker, const std::string& path) {
  const auto objects = owners_.find(kOf + worker);
  if (objects == owners_.end() || objects->second.erase(path) == 0) return;
  changed_.insert(objects->first);
  if (objects->second.empty()) owners_.erase(objects);
}

bool Parts::add_to_rest(const std::string& path, const std::vector<TObject*>& inputs) {
  changed_.insert(kRest);
  std::unique_ptr<TObject>& there = owners_.at(kRest).at(path);
  return add_up(*there->IsA(), there, inputs, nullptr);
}

std::vector<TObject*> Parts::all(const std::string& path) const {
  std::vector<TObject*> all;
  if (TObject* object = rest(path)) all.push_back(object);
  for (const auto& [owner, objects] : owners_) {
    const auto object = objects.find(path);
    if (owner != kRest && object != objects.end()) all.push_back(object->second.get());
  }
  return all;
}

// An object that cannot be added to the rest remains the worker's part.
void Parts::finish(const std::string& worker) {
  const auto objects = owners_.find(kOf + worker);
  if (objects == owners_.end()) return;
  changed_.insert(objects->first);
  Objects left;
  for (auto& [path, object] : objects->second) {
    if (path.starts_with(kEntries)) continue;
    if (rest(path) == nullptr) {
      set_rest(path, std::move(object));
    } else if (!add_to_rest(path, {object.get()})) {
      left[path] = std::move(object);
    }
  }
  objects->second = std::move(left);
  if (objects->second.empty()) owners_.erase(objects);
}

Long64_t Parts::entries(const std::string& worker, const std::string& path) const {
  const auto* const number = static_cast<TParameter<Long64_t>*>(find(kOf + worker, std::string(kEntries) + path));
  return number == nullptr ? 0 : number->GetVal();
}

void Parts::set_entries(const std::string& worker, const std::string& path, Long64_t entries) {
  replace(worker, std::string(kEntries) + path, std::make_unique<TParameter<Long64_t>>("", entries));
}

void Parts::drop_entries(const std::string& worker, const std::string& path) {
  drop(worker, std::string(kEntries) + path);
}

void Parts::read(OutputDirectories& directories) {
  TDirectory* const directory = directories.find(kPartsDirectory);
  if (directory == nullptr) return;
  for (TObject* entry : *directory->GetListOfKeys()) {
    auto* const key = static_cast<TKey*>(entry);
    const std::string_view name = key->GetName();
    const std::unique_ptr<TList> list(key->ReadObject<TList>());
    if (!list || name.size() < 2) continue;
    Objects& objects = owners_[std::string(name.substr(1, name.size() - 2))];
    for (TObjLink* link = list->FirstLink(); link != nullptr; link = link->Next()) {
      take_out_of_directory(*link->GetObject());
      objects[link->GetOption()].reset(link->GetObject());
      paths_.insert(link->GetOption());
    }
    list->Clear("nodelete");
  }
}

void Parts::write(OutputDirectories& directories) {
  for (const std::string& owner : std::exchange(changed_, {})) write(owner, directories);
}

void Parts::write_all(OutputDirectories& directories) const {
  for (const auto& [owner, objects] : owners_) write(owner, directories);
}

// Writes the objects of one owner as one list, in which each has its path as option. It is not compressed, because it
// is rewritten with every file of the worker.
void Parts::write(const std::string& owner, OutputDirectories& directories) const {
  TDirectory* const directory = directories.make(kPartsDirectory, "state of an unfinished merge; removed at its end");
  // Brackets, because ROOT removes blanks at both ends of a name.
  const std::string name = "[" + owner + "]";
  directories.change(directory);
  const auto objects = owners_.find(owner);
  if (objects == owners_.end()) return delete_key(directory->GetKey(name.c_str()));
  TFile& file = *directory->GetFile();
  const int compression = file.GetCompressionSettings();
  file.SetCompressionSettings(0);
  TList list;
  for (const auto& [path, object] : objects->second) list.Add(object.get(), path.c_str());
  directory->WriteTObject(&list, name.c_str(), "overwrite");
  list.Clear("nodelete");
  file.SetCompressionSettings(compression);
}

}  // namespace wherry::merge
