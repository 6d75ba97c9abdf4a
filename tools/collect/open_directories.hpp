// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/unique_fd.hpp"
#include "collect/refusal.hpp"

namespace wherry::tools {

/// Throws Refusal unless `path` is a plain relative path: no empty, "." or ".." component, no NUL, nothing absolute,
/// not the collector's own staging directory.
void check_path(std::string_view path);

/// The name of the collector's staging directory, directly below the destination.
inline constexpr std::string_view kStagingName = ".wherry-partial";

/// Opens, and makes, directories below the destination, component by component and never through a symbolic link. Keeps
/// the latest open, for all shippers together: they work on one tree, and a file costs no walk when its directory is
/// open. All calls from any thread.
class OpenDirectories {
 public:
  using Directory = std::shared_ptr<const UniqueFd>;

  OpenDirectories(UniqueFd root, std::size_t capacity);

  [[nodiscard]] const Directory& root() const { return root_; }

  /// The directory `path`, which must have passed check_path; empty: the destination itself. Makes what is missing.
  /// @param opened  is called with the path and descriptor if the directory was not in the cache
  /// Throws Refusal.
  template <class OnOpened>
  Directory enter(std::string_view path, OnOpened&& opened) {
    if (path.empty()) return root_;
    if (Directory known = find(path)) return known;
    const std::size_t slash = path.rfind('/');
    const Directory parent = slash == std::string_view::npos ? root_ : enter(path.substr(0, slash), opened);
    Directory directory = open(parent->get(), std::string(path.substr(slash + 1)));
    opened(path, directory->get());
    keep(path, directory);
    return directory;
  }

  /// Opens what exists; invalid with errno set if it does not. Not kept.
  [[nodiscard]] UniqueFd open_existing(std::string_view path) const;

  /// Closes all that nobody uses.
  void forget();

 private:
  struct Entry {
    std::string path;
    Directory directory;
  };

  Directory find(std::string_view path);
  void keep(std::string_view path, const Directory& directory);
  static Directory open(int parent, const std::string& name);

  Directory root_;
  std::size_t capacity_;
  std::mutex mutex_;
  std::list<Entry> latest_;                                                 // the latest used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> index_;  // its keys are the entries' paths
};

}  // namespace wherry::tools
