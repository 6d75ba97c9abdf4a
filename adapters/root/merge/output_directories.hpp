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

/// Frees the place of its object, too. Null does nothing.
void delete_key(TKey* key);

/// A path has a / before each name, and is "" for the top directory. One thread.
class OutputDirectories {
 public:
  /// @param top  a file that stays open longer than this exists
  explicit OutputDirectories(TDirectory& top);

  /// Null if there is none.
  TDirectory* find(const std::string& path);
  /// A directory that is new has this title. Its parent exists. Null if ROOT cannot make it.
  TDirectory* make(const std::string& path, const char* title);
  /// Removes a directory that has no directories in it, if it is there.
  void remove(const std::string& path);
  /// The newest object of this name, read: the caller's. Null if there is none.
  TObject* read(const Place& place);

  /// Keys come in the order in which their paths were first given to this, behind those that were there.
  void put_in_order(const std::string& path) { order_.try_emplace(path, order_.size()); }
  /// Something was written into it.
  void change(TDirectory* directory) { changed_.insert(directory); }
  /// All that have changed since the last call, their keys in order.
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
