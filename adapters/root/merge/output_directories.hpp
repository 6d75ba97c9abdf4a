// SPDX-License-Identifier: Apache-2.0
// The directories of an output, and the order of the keys in them.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "adapters/root/merge/read/source.hpp"

class TDirectory;
class TKey;
class TObject;

namespace wherry::merge {

/// Deletes a key and frees the space of its object in the file. Does nothing for null.
void delete_key(TKey* key);

/// Finds and creates directories of an output. A path has a / before each name; that of the top directory is "". One
/// thread.
class OutputDirectories {
 public:
  /// @param top  a file that stays open longer than this exists
  explicit OutputDirectories(TDirectory& top);

  /// Returns the directory, or null if it does not exist.
  TDirectory* find(const std::string& path);
  /// Returns the directory; creates it with this title if it does not exist. Its parent must exist. Null if ROOT cannot
  /// create it.
  TDirectory* make(const std::string& path, const char* title);
  /// Removes a directory that contains no directories. Does nothing if it does not exist.
  void remove(const std::string& path);
  /// Reads the newest object of this name, which the caller owns. Null if there is none, or if it is a directory.
  TObject* read(const Place& place);

  /// Defines the order of keys: the order in which their paths were first passed here, after those that existed before.
  void put_in_order(const std::string& path) { order_.try_emplace(path, order_.size()); }
  /// Marks a directory as changed. To be called when something was written into it.
  void change(TDirectory* directory) { changed_.insert(directory); }
  /// Returns the directories that have changed since the last call, after sorting their keys.
  std::vector<TDirectory*> take_changed();

 private:
  void keep(const std::string& path, TDirectory* directory);
  void sort_keys(TDirectory& directory);

  std::map<std::string, TDirectory*> directories_;
  std::map<TDirectory*, std::string> paths_;
  std::unordered_map<std::string, std::size_t> order_;
  std::set<TDirectory*> changed_;
};

}  // namespace wherry::merge
