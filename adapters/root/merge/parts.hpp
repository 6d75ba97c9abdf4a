// SPDX-License-Identifier: Apache-2.0
// Keeps the objects that a worker writes whole each time. Each is the worker's part of a sum, replaced by its next
// file.
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

/// The parts of an output, by path. One thread. They are stored in a directory of the output (kPartsDirectory) until it
/// is complete, because a process that continues it needs them.
class Parts {
 public:
  /// Whether some worker has had a part of this object.
  [[nodiscard]] bool has(const std::string& path) const { return paths_.contains(path); }
  /// Forgets a worker's part of an object that the worker, from now on, resets after each file. The file that is being
  /// added still has all of it.
  void drop(const std::string& worker, const std::string& path);
  void replace(const std::string& worker, const std::string& path, std::unique_ptr<TObject> object) {
    keep(kOf + worker, path, std::move(object));
  }
  /// Returns the sum of the objects that no later file replaces; null if there is none.
  [[nodiscard]] TObject* rest(const std::string& path) const { return find(kRest, path); }
  void set_rest(const std::string& path, std::unique_ptr<TObject> object) { keep(kRest, path, std::move(object)); }
  /// Adds objects to the rest. False if some could not be added.
  bool add_to_rest(const std::string& path, const std::vector<TObject*>& inputs);
  /// Returns all objects that make up the sum, the rest first.
  [[nodiscard]] std::vector<TObject*> all(const std::string& path) const;
  /// Adds the parts of a worker to the rest: no more files come from it.
  void finish(const std::string& worker);

  /// Returns how many entries this worker has written of a tree that it does not reset after each file; 0: none.
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

  std::map<std::string, Objects> owners_;  // kRest, and kOf + the name of each worker
  std::set<std::string> paths_;
  std::set<std::string> changed_;  // owners that have changed since the last write()
};

}  // namespace wherry::merge
