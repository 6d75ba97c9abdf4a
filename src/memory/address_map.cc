// SPDX-License-Identifier: Apache-2.0
#include "memory/address_map.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <string>

#include "base/fork_generation.hpp"

namespace wherry::memory {
namespace {

/// procmap_query of linux/fs.h. Headers before 6.11 lack it.
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

/// Asks for the mapping at `address`. False, and errno: ENOENT if there is none.
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

UniqueFd open_maps() { return UniqueFd(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)); }

/// Returns the content of a file. Empty: it cannot be read.
std::optional<std::string> read_all(int file) {
  constexpr std::size_t kStep = std::size_t{16} << 10;
  std::string text;
  for (std::size_t bytes = 0;;) {
    text.resize(bytes + kStep);
    const ssize_t n = ::pread(file, &text[bytes], kStep, static_cast<off_t>(bytes));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    bytes += static_cast<std::size_t>(n);
    text.resize(bytes);
    if (n == 0) return text;
  }
}

}  // namespace

FileIdentity identity_of(int descriptor) {
  struct stat status{};
  return ::fstat(descriptor, &status) == 0 ? FileIdentity{status.st_dev, status.st_ino} : FileIdentity{};
}

AddressMap::AddressMap() : maps_(open_maps()), error_(maps_.valid() ? 0 : errno) {
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
  // A forked child makes its own. The parent's is never destroyed: another thread may be using it.
  const auto* fresh = new Known{.generation = fork_generation(), .map = {}};
  // ADDRESS-MAP: publishes this map, unless another thread was first.
  if (known.compare_exchange_strong(current, fresh, std::memory_order_acq_rel)) return fresh->map;
  delete fresh;
  return current->map;
}

std::optional<MappedRange> AddressMap::at(std::uintptr_t address) const {
  Query query{};
  if (ask(maps_.get(), address, query)) return range_of(query);
  if (errno == ENOENT) return std::nullopt;
  const auto ranges = all();
  if (!ranges) return std::nullopt;
  const auto holds = [address](const MappedRange& range) { return range.start <= address && address < range.end; };
  const auto found = std::ranges::find_if(*ranges, holds);
  return found == ranges->end() ? std::nullopt : std::optional(*found);
}

std::optional<std::vector<MappedRange>> AddressMap::all() const {
  const UniqueFd another = maps_.valid() ? UniqueFd() : open_maps();
  std::optional<std::string> text;
  {
    const std::lock_guard lock(reading_);
    text = read_all(maps_.valid() ? maps_.get() : another.get());
  }
  if (!text) return std::nullopt;
  std::vector<MappedRange> ranges;
  for (std::size_t line = 0; line < text->size();) {
    const std::size_t end = std::min(text->find('\n', line), text->size());
    (*text)[end] = '\0';
    if (const auto range = range_of(&(*text)[line])) ranges.push_back(*range);
    line = end + 1;
  }
  if (ranges.empty()) return std::nullopt;
  return ranges;
}

}  // namespace wherry::memory
