// SPDX-License-Identifier: Apache-2.0
// What the files of one output say of their classes (ROOT's streamer infos). ROOT has one description of a version of a
// class per process; files of other outputs may have another under the same name and version.
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

/// One thread.
class ClassList {
 public:
  using Classes = std::vector<std::shared_ptr<TStreamerInfo>>;
  /// Reads the descriptions in a file. The classes themselves are not touched.
  static Classes read(TFile& file);
  /// All that a description says of the members, as text.
  static std::string members_of(const TStreamerInfo& info);
  /// "class NAME, version N" and the members of each class of which there can be one description only.
  static std::map<std::string, std::string> fixed(const Classes& file);

  /// Empty, or which class of a file has other members here.
  [[nodiscard]] std::string objection(const Classes& file, const std::vector<SourceTree>& trees) const;
  /// Shares those that are not here yet.
  void add(const Classes& file);
  /// The descriptions to be written: these, and ROOT's of what this process has written itself, which are `tagged`.
  /// Valid until the next add().
  [[nodiscard]] std::vector<TStreamerInfo*> with(const std::vector<TStreamerInfo*>& tagged) const;
  [[nodiscard]] bool has_changed() const { return changed_; }
  void set_written() { changed_ = false; }

 private:
  using Key = std::pair<std::string, int>;  // name and version
  static Key key_of(const TStreamerInfo& info) { return {info.GetName(), info.GetClassVersion()}; }

  std::multimap<Key, std::shared_ptr<TStreamerInfo>> classes_;
  bool changed_ = false;
};

/// Empty, or a class of a file that this process knows with other members: ROOT would read its objects wrongly.
std::string misread_class(const ClassList::Classes& file);

}  // namespace wherry::merge
