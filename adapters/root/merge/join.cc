// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/join.hpp"

#include <unistd.h>
#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "adapters/root/merge/commit/journal.hpp"
#include "adapters/root/merge/commit/shard_names.hpp"
#include "adapters/root/merge/merged_file.hpp"
#include "adapters/root/merge/read/file_image.hpp"
#include "adapters/root/merge/read/source.hpp"

namespace wherry::merge {

namespace {

[[noreturn]] void fail(const std::string& path) { throw std::system_error(errno, std::system_category(), path); }

/// Returns whether `output` already contains the files of `of`. Throws if it contains only some of them: a join adds
/// all of them with one commit.
bool holds(const MergedFile& output, const Sequences& of, const std::string& from) {
  std::size_t held = 0;
  for (const auto& [worker, last] : of) {
    const auto there = output.sequences().find(worker);
    if (there != output.sequences().end() && there->second >= last) {
      ++held;
    } else if (there != output.sequences().end()) {
      throw std::runtime_error(from + ": a worker has files in both outputs");
    }
  }
  if (held > 0 && held < of.size()) throw std::runtime_error(from + ": only part of it is in the other output");
  return held == of.size();
}

void append(MergedFile& to, const std::string& from, const Sequences& sequences, bool whole) {
  const FileImage image(from);
  Source source(image.bytes(), Origin::output);
  std::string problem = to.objection(source);
  if (problem.empty() && !to.sequences().contains(kEnding)) {
    to.begin(source);
    to.note_end(whole);
    to.commit();
  }
  if (!problem.empty()) throw std::runtime_error(from + ": " + problem);
  to.append(source, sequences);
  to.commit(MergedFile::AddUp::all);
}

// Removes the journal last: a shard without a journal would not be recognized as one.
void remove(const std::string& output) {
  const std::string journal = Journal::path_of(output);
  for (const std::string& path : {output, Journal::hidden(output), journal + ".new", journal}) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail(path);
  }
}

}  // namespace

void join(MergedFile& to, const std::string& from, bool whole) {
  auto sequences = Journal::recover(from);
  if (!sequences && std::filesystem::exists(from)) throw std::runtime_error(from + ": has no journal");
  if (sequences) sequences->erase(kEnding);
  if (sequences && !holds(to, *sequences, from)) append(to, from, *sequences, whole);
  remove(from);
}

}  // namespace wherry::merge
