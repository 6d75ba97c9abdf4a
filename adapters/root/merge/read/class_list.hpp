// SPDX-License-Identifier: Apache-2.0
// The descriptions of classes in the files of one output (ROOT's streamer infos). ROOT itself keeps one description per
// version of a class and process. Files of other outputs may have a different one with the same name and version.
#pragma once

#include <TStreamerInfo.h>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

class TFile;
class TList;

namespace wherry::merge {

struct SourceTree;

/// Not thread-safe.
class ClassList {
 public:
  using Classes = std::vector<std::shared_ptr<TStreamerInfo>>;
  /// Reads the descriptions in a file. Does not change ROOT's classes.
  static Classes read(TFile& file);
  /// Returns the types, names and ranges of the members, as text.
  static std::string members_of(const TStreamerInfo& info);
  /// Returns "class NAME, version N" and the members of each class that can have only one description per version.
  static std::map<std::string, std::string> fixed(const Classes& file);

  /// Returns which class of a file has other members in this list, and so cannot be merged; empty if none.
  [[nodiscard]] std::string objection(const Classes& file, const std::vector<SourceTree>& trees) const;
  /// Adds the descriptions that are not in the list yet, and shares their ownership.
  void add(const Classes& file);
  /// Returns the descriptions to be written: those in the list, and `tagged`, ROOT's descriptions of the classes that
  /// this process itself has written. Valid until the next add().
  [[nodiscard]] std::vector<TStreamerInfo*> with(const std::vector<TStreamerInfo*>& tagged) const;
  [[nodiscard]] bool has_changed() const { return changed_; }
  void set_written() { changed_ = false; }

 private:
  using Key = std::pair<std::string, int>;  // name and version
  static Key key_of(const TStreamerInfo& info) { return {info.GetName(), info.GetClassVersion()}; }

  std::multimap<Key, std::shared_ptr<TStreamerInfo>> classes_;
  bool changed_ = false;
};

/// Returns the name of a class of a file that this process knows with other members, so that ROOT would misread its
/// objects. Empty if there is none.
std::string misread_class(const ClassList::Classes& file);

}  // namespace wherry::merge
