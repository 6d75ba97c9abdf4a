// SPDX-License-Identifier: Apache-2.0
//
// A segment of the files' cache whose tables another process has written: every call returns, and nothing outside the
// segment is read or written. The input is a list of words with the places where they go, and calls between them.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "file/cache.hpp"
#include "file/segment_file.hpp"

namespace {

using namespace wherry::file;

struct Step {
  std::uint8_t what;
  std::uint8_t small;
  std::uint16_t where;
  std::uint32_t low;
  std::uint64_t value;
};
static_assert(sizeof(Step) == 16);

struct Target {
  Target() : path("/dev/shm/wherry-files-fuzz-" + std::to_string(::getpid())), file(make_segment(path, kLeastCache)) {
    if (!file.valid() || map_segment(file.get(), segment) || cache.attach(path.c_str())) std::abort();
    ::unlink(path.c_str());
    tables.assign(segment.base(), segment.base() + wherry::layout::file_tables_bytes(segment.sets()));
  }
  void reset() { std::memcpy(segment.base(), tables.data(), tables.size()); }

  std::string path;
  wherry::UniqueFd file;
  Segment segment;
  Cache cache;
  std::vector<std::byte> tables;
};

/// The tables in turn, so that few bits reach the words that matter.
wherry::layout::Word& word_at(const Segment& segment, std::uint8_t table, std::uint32_t index) {
  using namespace wherry::layout;
  constexpr std::array<std::size_t, 7> kTables{64,         kFileUnseen, kFileClients, kFileChanges,
                                               kFileMarks, kFileFiles,  kFileSets};
  const std::size_t begin = kTables[table % kTables.size()];
  const std::size_t words = (file_tables_bytes(segment.sets()) - begin) / sizeof(Word);
  return reinterpret_cast<Word*>(segment.base() + begin)[index % words];
}

void call(Cache& cache, const Segment& segment, const Step& step) {
  const Key key(step.small % 2, step.where % 4);
  const File file = step.low == 0 ? cache.open(key) : File{.slot = step.low, .born = step.value};
  std::array<std::byte, 40'000> to;
  struct ::stat status{};
  status.st_size = step.where;
  status.st_ctim.tv_nsec = 1;
  switch (step.what % 8) {
    case 0:
      (void)cache.validate(file, Stamp(status, step.value));
      break;
    case 1:
      (void)cache.read(file, step.value, std::span(to).first(step.where % to.size()));
      break;
    case 2: {
      Fill fill = cache.fill(file, step.value % 64, static_cast<Admission>(step.small % 2));
      if (fill) std::memset(fill.memory().data(), 1, fill.memory().size());
      (void)fill.publish(step.where);
      break;
    }
    case 3: {
      const Change change(cache, key, step.value, step.low);
      break;
    }
    case 4:
      cache.unmark(step.small % 2 == 0 ? cache.mark(key) : cache.mark_all());
      break;
    case 5:
      cache.unmark({step.low});
      break;
    case 6:
      cache.drop(key, step.value, step.low);
      break;
    default:
      repair(segment, step.value, step.small % 2 == 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Target target;
  target.reset();
  for (; size >= sizeof(Step); data += sizeof(Step), size -= sizeof(Step)) {
    Step step{};
    std::memcpy(&step, data, sizeof step);
    if (step.what < 128) {
      word_at(target.segment, step.what, step.low) = step.value;
    } else {
      call(target.cache, target.segment, step);
    }
  }
  return 0;
}
