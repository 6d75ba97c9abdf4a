// SPDX-License-Identifier: Apache-2.0
#include "collect/batch.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace wherry::tools {
namespace {

// A flush takes a disk a few milliseconds in addition to the time for the data. About this much arrives in that time.
constexpr std::size_t kFiles = 256;
constexpr std::uint64_t kBytes = 64 << 20;

}  // namespace

void Batch::add(Arrived file) {
  bytes_ += file.bytes;
  files_.push_back(std::move(file));
}

bool Batch::full() const {
  return !files_.empty() && (!destination_.durable() || files_.size() >= kFiles || bytes_ >= kBytes ||
                             destination_.has_too_many_pending_files());
}

bool Batch::holds(std::string_view path) const {
  return std::any_of(files_.begin(), files_.end(), [path](const Arrived& file) { return file.path == path; });
}

void Batch::settle(const Named& named, const Refused& refused) {
  bytes_ = 0;
  std::map<FileSystem*, int> flushed;
  std::vector<Arrived> files = std::exchange(files_, {});
  for (Arrived& file : files) {
    try {
      FileSystem& file_system = file.content->file_system();
      if (destination_.durable()) {
        if (!flushed.contains(&file_system)) flushed[&file_system] = file_system.flush();
        file.content->check_flushed(flushed[&file_system]);
      }
      file.content->give_name();
      file.content.reset();
      named(file);
    } catch (const Refusal& refusal) {
      file.content.reset();  // Frees its disk space first, because other files may need it.
      refused(file, refusal);
    }
  }
}

}  // namespace wherry::tools
