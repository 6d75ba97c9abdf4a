// SPDX-License-Identifier: Apache-2.0
// Objects that a worker writes whole each time: its part of a sum, which the next one replaces.
#pragma once

#include <TObject.h>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace wherry::merge {

class OutputDirectories;

/// One thread. An output has a directory for them as long as it is not complete: a process that goes on with it needs
/// them. Objects are known by their paths.
class Parts {
 public:
  /// Whether there is one of any worker.
  [[nodiscard]] bool has(const std::string& path) const { return paths_.contains(path); }
  /// Drops the part of a worker that begins this object anew from now on: its next file has all of it.
  void drop(const std::string& worker, const std::string& path);
  void replace(const std::string& worker, const std::string& path, std::unique_ptr<TObject> object) {
    keep(kOf + worker, path, std::move(object));
  }
  /// The sum of the objects that no later file replaces; null if there is none.
  [[nodiscard]] TObject* rest(const std::string& path) const { return find(kRest, path); }
  void set_rest(const std::string& path, std::unique_ptr<TObject> object) { keep(kRest, path, std::move(object)); }
  /// False if they could not be added.
  bool add_to_rest(const std::string& path, const std::vector<TObject*>& inputs);
  /// All that are to be added up, the rest first.
  [[nodiscard]] std::vector<TObject*> all(const std::string& path) const;
  /// Nothing more comes from this worker.
  void finish(const std::string& worker);

  /// How many entries this worker has written of a tree that is not begun anew.
  [[nodiscard]] Long64_t entries(const std::string& worker, const std::string& path) const;
  void set_entries(const std::string& worker, const std::string& path, Long64_t entries);
  void drop_entries(const std::string& worker, const std::string& path);

  void read(OutputDirectories& directories);
  /// Writes the parts that have changed since the last call.
  void write(OutputDirectories& directories);
  void write_all(OutputDirectories& directories) const;

 private:
  using Objects = std::map<std::string, std::unique_ptr<TObject>>;  // by path
  static const std::string kRest;
  static const std::string kOf;
  [[nodiscard]] TObject* find(const std::string& owner, const std::string& path) const;
  void keep(const std::string& owner, const std::string& path, std::unique_ptr<TObject> object);
  void write(const std::string& owner, OutputDirectories& directories) const;

  std::map<std::string, Objects> owners_;  // the rest, and of each worker
  std::set<std::string> paths_;
  std::set<std::string> changed_;  // owners
};

}  // namespace wherry::merge
