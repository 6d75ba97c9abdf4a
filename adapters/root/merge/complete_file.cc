// SPDX-License-Identifier: Apache-2.0
// MergedFile: completes the output. Removes the state and the holes that commits have left, and builds the indices.
#include <unistd.h>
#include <exception>
#include <stdexcept>
#include <string>

#include "adapters/root/merge/commit/directory_lock.hpp"
#include "adapters/root/merge/commit/shard_names.hpp"
#include "adapters/root/merge/merged_file.hpp"
#include "adapters/root/merge/read/file_image.hpp"
#include "adapters/root/merge/tree_index.hpp"

namespace wherry::merge {

namespace {
// An output is rewritten if more than 1/25 of it is holes. Files of hadd also have some.
constexpr Long64_t kMostHoles = 25;
}  // namespace

void MergedFile::note_end(bool whole) {
  if (!sequences_.contains(kEnding)) appended_[kEnding] = whole ? kEndingWhole : kEndingIncomplete;
}

// The first commit removes the state that further files would need, and contains the note that there are none. It comes
// before the output is rewritten, because that may take long.
void MergedFile::close(bool whole) {
  if (!file_) open_new(options_.compression >= 0 ? options_.compression : 1);
  note_end(whole);
  complete();
  if (has_too_many_holes()) write_anew();
  if (options_.durable) file_->synchronize();
  forget();
  journal_->remove();
  journal_.reset();
}

void MergedFile::complete() {
  closing_ = true;
  for (const auto& [path, kind] : kinds_) {
    if (kind != Kind::tree) continue;
    const std::size_t name = path.rfind('/');
    Tree* entry = known_tree({path.substr(0, name), path.substr(name + 1)});
    if (entry == nullptr) continue;
    build_index(*entry->tree);
    entry->changed = true;
  }
  if (!copy_) directories_->remove(kPartsDirectory);
  make_commit(AddUp::some);
}

void MergedFile::forget() {
  trees_.clear();
  streamer_infos_.clear();
  sums_.reset();
  directories_.reset();
  file_.reset();
}

bool MergedFile::has_too_many_holes() const { return file_->holes() * kMostHoles > file_->end(); }

/// Rewrites the output without holes. False if that failed, for example because the disk has no space for a copy; the
/// output is then unchanged.
bool MergedFile::write_anew() {
  MergedFileOptions options = options_;
  options.shapes = nullptr;
  MergedFile copy(path_, options, Copy::hidden);
  std::string wrong;
  try {
    write_copy(copy);
  } catch (const std::exception& problem) {
    wrong = problem.what();
  }
  const DirectoryLock lock(path_);
  const bool named = copy.file_ && copy.file_->has_its_name();
  if (wrong.empty() && !named) wrong = "another output uses the name of its copy, " + Journal::hidden(path_);
  if (wrong.empty()) {
    journal_->replace_output(static_cast<std::uint64_t>(copy.file_->end()));
    return true;
  }
  if (named) ::unlink(Journal::hidden(path_).c_str());
  warnings_.push_back("the output keeps its holes: " + wrong);
  return false;
}

void MergedFile::write_copy(MergedFile& copy) {
  const FileImage image(path_);
  Source source(image.bytes(), Origin::output);
  if (!source.error().empty()) throw std::runtime_error(source.error());
  copy.append(source, {});
  if (!closing_) sums_->parts().write_all(*copy.directories_);
  copy.complete();
  copy.file_->write_name();
}

}  // namespace wherry::merge
