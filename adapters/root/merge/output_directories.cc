// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/output_directories.hpp"

#include <TClass.h>
#include <TDirectory.h>
#include <TKey.h>
#include <TList.h>
#include <algorithm>
#include <limits>
#include <utility>

namespace wherry::merge {

void delete_key(TKey* key) {
  if (key == nullptr) return;
  key->Delete();
  delete key;
}

OutputDirectories::OutputDirectories(TDirectory& top) { keep("", &top); }

void OutputDirectories::keep(const std::string& path, TDirectory* directory) {
  directories_[path] = directory;
  paths_[directory] = path;
  for (TObject* key : *directory->GetListOfKeys()) put_in_order(path + "/" + key->GetName());
}

TDirectory* OutputDirectories::find(const std::string& path) {
  const auto known = directories_.find(path);
  if (known != directories_.end()) return known->second;
  const std::size_t slash = path.rfind('/');
  TDirectory* parent = find(path.substr(0, slash));
  const std::string name = path.substr(slash + 1);
  if (parent == nullptr || parent->GetKey(name.c_str()) == nullptr) return nullptr;
  TDirectory* directory = parent->GetDirectory(name.c_str());
  if (directory != nullptr) keep(path, directory);
  return directory;
}

TDirectory* OutputDirectories::make(const std::string& path, const char* title) {
  if (TDirectory* there = find(path)) return there;
  const std::size_t slash = path.rfind('/');
  TDirectory* parent = find(path.substr(0, slash));
  TDirectory* directory = parent == nullptr ? nullptr : parent->mkdir(path.substr(slash + 1).c_str(), title);
  if (directory == nullptr) return nullptr;
  keep(path, directory);
  change(parent);
  change(directory);
  return directory;
}

void OutputDirectories::remove(const std::string& path) {
  TDirectory* directory = find(path);
  if (directory == nullptr) return;
  while (TObject* key = directory->GetListOfKeys()->First()) delete_key(static_cast<TKey*>(key));
  TDirectory* parent = find(path.substr(0, path.rfind('/')));
  delete_key(parent->GetKey(directory->GetName()));
  changed_.erase(directory);
  change(parent);
  paths_.erase(directory);
  directories_.erase(path);
  delete directory;
}

TObject* OutputDirectories::read(const Place& place) {
  TDirectory* directory = find(place.directory);
  TKey* key = directory == nullptr ? nullptr : directory->GetKey(place.name.c_str());
  if (key == nullptr || TClass::GetClass(key->GetClassName())->InheritsFrom(TDirectory::Class())) return nullptr;
  return key->ReadObj();
}

std::vector<TDirectory*> OutputDirectories::take_changed() {
  for (TDirectory* directory : changed_) sort_keys(*directory);
  const auto changed = std::exchange(changed_, {});
  return {changed.begin(), changed.end()};
}

// Restores the order of keys, because an object that is written again gets a key after all others. Keys of one name
// stay together, the newest first. Keys without a place come last: they are ROOT's own, and are in no file's order.
void OutputDirectories::sort_keys(TDirectory& directory) {
  const std::string path = paths_.at(&directory) + "/";
  std::vector<std::pair<std::size_t, TObject*>> keys;
  for (TObject* key : *directory.GetListOfKeys()) {
    const auto place = order_.find(path + key->GetName());
    keys.emplace_back(place == order_.end() ? std::numeric_limits<std::size_t>::max() : place->second, key);
  }
  const auto before = [](const auto& one, const auto& other) { return one.first < other.first; };
  if (std::ranges::is_sorted(keys, before)) return;
  std::ranges::stable_sort(keys, before);
  TList* list = directory.GetListOfKeys();
  list->Clear("nodelete");
  for (const auto& [place, key] : keys) list->AddLast(key);
}

}  // namespace wherry::merge
