// SPDX-License-Identifier: Apache-2.0
// One file to be merged, read in place: everything in it that is an object is read here, before anything is written, so
// that a file that cannot be read changes nothing.
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

/// A directory as the path from the top, "" for the top itself.
struct Place {
  std::string directory;
  std::string name;
  [[nodiscard]] std::string path() const { return directory + "/" + name; }
};

/// What is done with an object.
enum class Kind : std::uint8_t { directory, tree, object, ntuple, kept };
Kind kind_of(TClass& type);
const char* to_string(Kind kind);

/// The directory of an output that is not complete with what merging goes on with. A worker's file must have no object
/// of that path.
inline constexpr const char* kPartsDirectory = "/.wherry";

/// What a file is: one of a worker, or an output that may not be complete.
enum class Origin : std::uint8_t { worker, output };

/// Undoes that ROOT adds what it reads or copies to a directory, which would delete it.
void take_out_of_directory(TObject& object);

struct SourceDirectory {
  std::string path;
  std::string title;
};

/// How entries of one tree can become entries of another.
enum class Way : std::uint8_t {
  baskets,  ///< copied as they are
  entries,  ///< read and filled again: types or compression differ
  none,     ///< the trees have nothing to do with each other
};

struct SourceTree {
  Place place;
  std::unique_ptr<TTree> tree;
  Way way = Way::none;  ///< into the output's tree, once that is known
};

/// Histograms and whatever else ROOT can add up.
struct SourceObject {
  Place place;
  TClass* type = nullptr;
  std::unique_ptr<TObject> object;
};

/// An object that cannot be merged: kept as it is.
struct SourceKey {
  Place place;
  TKey* key = nullptr;
};

/// An RNTuple of the top directory: ROOT's merger knows no others.
struct SourceNTuple {
  std::string name;
  TKey* key = nullptr;
  std::string fields;  ///< as NTupleShape has them
};

class Source {
 public:
  /// Reads. The bytes must stay until this is gone. Never throws for what the bytes are: see `error`.
  explicit Source(std::span<const std::byte> bytes, Origin origin = Origin::worker);
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source();

  /// Another file with these trees: their numbers are its own already.
  void become(std::span<const std::byte> bytes);

  [[nodiscard]] const std::string& error() const { return error_; }
  /// ROOT's messages about a file that can be merged.
  [[nodiscard]] const Messages& warnings() const { return warnings_; }
  [[nodiscard]] TFile& file() { return *file_; }
  [[nodiscard]] int compression() const { return file_->GetCompressionSettings(); }
  /// The record that describes the classes, as it is in the file.
  [[nodiscard]] std::span<const std::byte> streamer_infos() const;
  /// What that says, read when it is first asked for.
  [[nodiscard]] const ClassList::Classes& classes();

  std::vector<SourceDirectory> directories;  ///< each behind the one that it is in
  std::vector<SourceTree> trees;
  std::vector<SourceObject> objects;
  std::vector<SourceKey> keys;
  std::vector<SourceNTuple> ntuples;
  std::map<std::string, Kind> kinds;  ///< of everything in it, by path
  std::set<std::string> whole;        ///< paths of what the worker's next file will have all of again
  std::vector<std::string> order;     ///< the paths of all of it, as they follow each other in the file

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
