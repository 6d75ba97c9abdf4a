// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/unique_fd.hpp"
#include "collect/file_system.hpp"
#include "collect/refusal.hpp"

namespace wherry::tools {

/// Throws Refusal unless `path` is a plain relative path: no empty, "." or ".." component, no NUL, not absolute, and no
/// component with the collectors' own prefix.
void check_path(std::string_view path);

/// A directory at or below the destination, open.
struct OpenDirectory {
  UniqueFd descriptor;
  std::shared_ptr<FileSystem> file_system;

  [[nodiscard]] int get() const { return descriptor.get(); }
};

/// Opens and creates directories below the destination, component by component, and never through a symbolic link.
/// Keeps the latest ones open for all shippers together. Shippers work on one tree, so a file needs no path walk if its
/// directory is open. Threads: any call from any thread.
class OpenDirectories {
 public:
  using Directory = std::shared_ptr<const OpenDirectory>;

  OpenDirectories(UniqueFd root, std::size_t capacity);

  [[nodiscard]] const Directory& root() const { return root_; }

  /// Opens the directory `path`, which must have passed check_path; empty: the destination itself. Creates missing
  /// directories. At any depth, at most two directories are open in addition to those that are kept.
  /// @param opened  called with the path and a descriptor of each directory on the way that was not in the cache,
  /// before
  ///                it is used. The descriptor is O_PATH if reading is denied, which `opened` may change
  /// Throws Refusal.
  template <class OnOpened>
  Directory enter(std::string_view path, OnOpened&& opened) {
    auto [directory, known] = find_deepest(path);
    while (known < path.size()) {
      const std::size_t begin = known == 0 ? 0 : known + 1;
      known = std::min(path.find('/', begin), path.size());
      const std::string name(path.substr(begin, known - begin));
      const std::string_view so_far = path.substr(0, known);
      UniqueFd named = open_or_make(directory->get(), name);
      opened(so_far, named.get());
      directory = hold(directory->get(), name, std::move(named));
      keep(so_far, directory);
    }
    return directory;
  }

  /// Opens an existing directory (empty: the destination itself), without keeping it open. Invalid on failure, with
  /// errno set.
  [[nodiscard]] UniqueFd open_existing(std::string_view path) const;

  /// Closes all directories that are not in use, and removes staging directories. No file may be pending.
  void forget();

 private:
  struct Entry {
    std::string path;
    Directory directory;
  };

  Directory find(std::string_view path);
  std::pair<Directory, std::size_t> find_deepest(std::string_view path);
  void keep(std::string_view path, const Directory& directory);
  static UniqueFd open_or_make(int parent, const std::string& name);
  Directory hold(int parent, const std::string& name, UniqueFd named);

  FileSystems file_systems_;
  Directory root_;
  std::size_t capacity_;
  std::mutex mutex_;
  std::list<Entry> latest_;                                                 // most recently used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> index_;  // its keys are the entries' paths
};

}  // namespace wherry::tools
