// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "ship/shipment.hpp"

namespace wherry::tools {

/// Walks the paths that the user named, and ships them. Reports and skips paths that cannot be read.
class Tree {
 public:
  using Failed = std::function<void(std::string path, std::string error)>;

  Tree(Shipment& shipment, bool recursive, Failed failed)
      : shipment_(shipment), recursive_(recursive), failed_(std::move(failed)) {}

  /// Ships `path`, relative to the directory open as `base`, under the name `name`. An empty name ships the content of
  /// a directory without the directory itself.
  void ship(int base, const std::string& path, const std::string& name);

 private:
  // A directory that is being shipped. Deep in a tree it is closed while its subdirectories are shipped.
  struct Level {
    UniqueFd descriptor;
    std::string name;
    struct stat status{};
  };

  void ship_entry(int parent, const char* entry, const std::string& name, unsigned char type, bool follow);
  void ship_file(int parent, const char* entry, const std::string& name);
  void ship_symlink(int parent, const char* entry, const std::string& name);
  void ship_directory(int parent, const char* entry, const std::string& name, bool follow);
  bool begin_directory(int parent, const char* entry, bool follow, Level& level);
  void ship_below(Level& level, int depth);
  std::vector<std::string> ship_all_but_directories(const Level& level);
  bool reopen(Level& level, const Level& child);
  void fail(const std::string& name, int error);

  Shipment& shipment_;
  bool recursive_;
  Failed failed_;
};

/// The name under which a path given without -C is shipped: its last component, empty for ".", ".." and "/".
std::string base_name(const std::string& path);
/// The name under which a path given with -C is shipped: the path without "." and empty components.
std::string plain_name(const std::string& path);

}  // namespace wherry::tools
