// SPDX-License-Identifier: Apache-2.0
#include "fabric/address_map.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <memory>

#include "base/fork_generation.hpp"

namespace wherry::fabric {
namespace {

/// As linux/fs.h has it since 6.11; older headers do not.
struct Query {
  std::uint64_t size;
  std::uint64_t query_flags;
  std::uint64_t query_addr;
  std::uint64_t vma_start;
  std::uint64_t vma_end;
  std::uint64_t vma_flags;
  std::uint64_t vma_page_size;
  std::uint64_t vma_offset;
  std::uint64_t inode;
  std::uint32_t dev_major;
  std::uint32_t dev_minor;
  std::uint32_t vma_name_size;
  std::uint32_t build_id_size;
  std::uint64_t vma_name_addr;
  std::uint64_t build_id_addr;
};
static_assert(sizeof(Query) == 104);
constexpr unsigned long kQuery = _IOWR('f', 17, Query);
constexpr std::uint64_t kReadable = 1, kWritable = 2, kExecutable = 4, kShared = 8;

/// False, and errno: ENOENT if nothing is there.
bool ask(int maps, std::uintptr_t address, Query& query) {
  query = {};
  query.size = sizeof query;
  query.query_addr = address;
  return ::ioctl(maps, kQuery, &query) == 0;
}

MappedRange range_of(const Query& query) {
  const auto bit = [&query](std::uint64_t flag, int protection) {
    return (query.vma_flags & flag) != 0 ? protection : 0;
  };
  return {.start = query.vma_start,
          .end = query.vma_end,
          .offset = query.vma_offset,
          .file = {::makedev(query.dev_major, query.dev_minor), query.inode},
          .protection = bit(kReadable, PROT_READ) | bit(kWritable, PROT_WRITE) | bit(kExecutable, PROT_EXEC),
          .shared = (query.vma_flags & kShared) != 0};
}

std::optional<MappedRange> range_of(const char* line) {
  std::uint64_t start = 0, end = 0, offset = 0, inode = 0;
  unsigned major = 0, minor = 0;
  std::array<char, 5> access{};
  if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &start, &end, access.data(), &offset,
                  &major, &minor, &inode) != 7) {
    return std::nullopt;
  }
  return MappedRange{.start = start,
                     .end = end,
                     .offset = offset,
                     .file = {::makedev(major, minor), inode},
                     .protection = (access[0] == 'r' ? PROT_READ : 0) | (access[1] == 'w' ? PROT_WRITE : 0) |
                                   (access[2] == 'x' ? PROT_EXEC : 0),
                     .shared = access[3] == 's'};
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

FileIdentity identity_of(int descriptor) {
  struct stat status{};
  return ::fstat(descriptor, &status) == 0 ? FileIdentity{status.st_dev, status.st_ino} : FileIdentity{};
}

AddressMap::AddressMap() : maps_(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {
  Query query{};
  is_quick_ = ask(maps_.get(), reinterpret_cast<std::uintptr_t>(&query), query);
}

const AddressMap& AddressMap::own() {
  struct Known {
    std::uint64_t generation;
    AddressMap map;
  };
  static std::atomic<const Known*> known{nullptr};
  const Known* current = known.load(std::memory_order_acquire);  // ADDRESS-MAP
  if (current != nullptr && current->generation == fork_generation()) return current->map;
  // A child's is another than its parent's, which is left to itself: another thread may be using it.
  const auto* fresh = new Known{.generation = fork_generation(), .map = {}};
  // ADDRESS-MAP: the map made here, or that of the thread that was first.
  if (known.compare_exchange_strong(current, fresh, std::memory_order_acq_rel)) return fresh->map;
  delete fresh;
  return current->map;
}

std::optional<MappedRange> AddressMap::at(std::uintptr_t address) const {
  Query query{};
  if (ask(maps_.get(), address, query)) return range_of(query);
  if (errno == ENOENT) return std::nullopt;
  for (const MappedRange& range : all()) {
    if (range.start <= address && address < range.end) return range;
  }
  return std::nullopt;
}

std::vector<MappedRange> AddressMap::all() {
  std::vector<MappedRange> ranges;
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen("/proc/self/maps", "re"));
  if (file == nullptr) return ranges;
  std::array<char, 4608> line{};  // a path and what stands before it
  while (std::fgets(line.data(), line.size(), file.get()) != nullptr) {
    if (const auto range = range_of(line.data())) ranges.push_back(*range);
  }
  return ranges;
}

}  // namespace wherry::fabric
