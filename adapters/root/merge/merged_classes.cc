// SPDX-License-Identifier: Apache-2.0
// MergedFile: collects the descriptions of classes from the files, for the output.
#include <cstddef>
#include <stdexcept>
#include <string>

#include "adapters/root/merge/merged_file.hpp"

namespace wherry::merge {

namespace {

// Streamer info records that are remembered. Workers of one program write the same record, or a few. Others are parsed
// each time.
constexpr std::size_t kMostStreamerInfos = 64;

std::string record_of(const Source& source) {
  const auto infos = source.streamer_infos();
  return {reinterpret_cast<const char*>(infos.data()), infos.size()};
}

}  // namespace

bool MergedFile::has_classes_of(const Source& source) const { return streamer_infos_.contains(record_of(source)); }

void MergedFile::take_classes(Source& source) {
  const std::string record = record_of(source);
  if (const auto known = streamer_infos_.find(record); known != streamer_infos_.end()) {
    misread_ = known->second;
    return;
  }
  misread_ = misread_class(source.classes());
  file_->classes().add(source.classes());
  if (streamer_infos_.size() < kMostStreamerInfos) streamer_infos_.emplace(record, misread_);
}

// Throws if this process would misread the file's objects. Not needed for baskets that are copied as they are.
void MergedFile::require_readable_objects() const {
  if (misread_.empty()) return;
  throw std::runtime_error("class " + misread_ + " has other members in another output of this process, and this file" +
                           " has objects that must be read; merge it with a wherry-merge of its own");
}

}  // namespace wherry::merge
