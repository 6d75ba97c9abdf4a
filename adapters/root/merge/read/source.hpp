// SPDX-License-Identifier: Apache-2.0
// One file to be merged, read in place. All its objects that are to be merged are read before anything is written, so
// that a file that cannot be read changes nothing in the output.
#pragma once

#include <TTree.h>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "adapters/root/merge/read/class_list.hpp"
#include "adapters/root/merge/read/root_errors.hpp"
#include "adapters/root/merge/read/viewed_file.hpp"

class TClass;
class TKey;

namespace wherry::merge {

/// The place of an object. `directory` is a path with a / before each name, "" for the top directory.
struct Place {
  std::string directory;
  std::string name;
  [[nodiscard]] std::string path() const { return directory + "/" + name; }
};

/// How an object is merged: directories recursively, trees by appending, objects by adding up, RNTuples by ROOT. `kept`
/// objects cannot be merged and are copied.
enum class Kind : std::uint8_t { directory, tree, object, ntuple, kept };
Kind kind_of(TClass& type);
const char* to_string(Kind kind);

/// The directory of an incomplete output that stores the state which a restart needs. A worker's file must not contain
/// an object with this path.
inline constexpr const char* kPartsDirectory = "/.wherry";

/// Whether a file comes from a worker, or is an output, which may be incomplete.
enum class Origin : std::uint8_t { worker, output };

/// Removes an object from its directory. ROOT adds objects that it reads or copies to a directory, which would delete
/// them.
void take_out_of_directory(TObject& object);

struct SourceDirectory {
  std::string path;
  std::string title;
};

/// How the entries of one tree are appended to another.
enum class Way : std::uint8_t {
  baskets,  ///< the baskets are copied as they are
  entries,  ///< the entries are read and filled again, for example because types or compression differ
  none,     ///< not possible: the trees do not fit; or not determined yet
};

struct SourceTree {
  Place place;
  std::unique_ptr<TTree> tree;
  Way way = Way::none;  ///< how it is appended to the output's tree, once that is known
};

/// A histogram, or another object that ROOT can add up.
struct SourceObject {
  Place place;
  TClass* type = nullptr;
  std::unique_ptr<TObject> object;
};

/// An object that cannot be merged. The output keeps it as it is.
struct SourceKey {
  Place place;
  TKey* key = nullptr;
};

/// An RNTuple in the top directory. ROOT does not merge others.
struct SourceNTuple {
  std::string name;
  TKey* key = nullptr;
  std::string fields;  ///< NTupleShape::fields
};

class Source {
 public:
  /// Reads the file. The bytes must stay valid as long as this exists. Does not throw for invalid bytes: see `error`.
  explicit Source(std::span<const std::byte> bytes, Origin origin = Origin::worker);
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source();

  /// Replaces the bytes by those of another file with the same trees. The caller has already set the numbers in the
  /// trees (TreeNumbers::set).
  void become(std::span<const std::byte> bytes);

  /// Returns why the file cannot be merged; empty if it can.
  [[nodiscard]] const std::string& error() const { return error_; }
  /// Returns ROOT's messages about a file that can be merged.
  [[nodiscard]] const Messages& warnings() const { return warnings_; }
  [[nodiscard]] TFile& file() { return *file_; }
  [[nodiscard]] int compression() const { return file_->GetCompressionSettings(); }
  /// Returns the record that describes the classes, as it is in the file, without its key.
  [[nodiscard]] std::span<const std::byte> streamer_infos() const;
  /// Returns the parsed descriptions of that record. The first call parses them.
  [[nodiscard]] const ClassList::Classes& classes();

  std::vector<SourceDirectory> directories;  ///< each after its parent
  std::vector<SourceTree> trees;
  std::vector<SourceObject> objects;
  std::vector<SourceKey> keys;
  std::vector<SourceNTuple> ntuples;
  std::map<std::string, Kind> kinds;  ///< the kind of everything in the file, by path
  std::set<std::string> whole;        ///< paths of objects that later files of the worker replace (kRootWholeObjects)
  std::vector<std::string> order;     ///< all paths, in the order of the file

 private:
  void read();
  void read_directory(TDirectory& directory, const std::string& path, int depth);
  void read_key(TKey& key, const std::string& path, bool newest, int depth);
  void read_whole(TKey& key);
  void read_subdirectory(TKey& key, const Place& place, int depth);
  void read_tree(TKey& key, const Place& place);
  void read_ntuple(TKey& key, const Place& place);
  void read_object(TKey& key, TClass& type, const Place& place);

  std::span<const std::byte> bytes_;
  const Origin origin_;
  std::string error_;
  Messages warnings_;
  std::unique_ptr<ViewedFile> file_;
  std::optional<ClassList::Classes> classes_;
};

}  // namespace wherry::merge
