// SPDX-License-Identifier: Apache-2.0
#include "memory/memory_advice.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>

#include <wherry/error.hpp>

#include "base/refused_call.hpp"

namespace wherry::memory {
namespace {

/// An advice, the advice that undoes it, and its flag in /proc/PID/smaps.
struct Kind {
  int set;
  int take_back;
  const char* flag;
};
constexpr Kind kDontFork{.set = MADV_DONTFORK, .take_back = MADV_DOFORK, .flag = " dc"};
constexpr Kind kDontDump{.set = MADV_DONTDUMP, .take_back = MADV_DODUMP, .flag = " dd"};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// Looks a flag up in smaps: for a mapping of one page, which cannot be split.
bool is_listed_with(const Kind& kind, std::uintptr_t start) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen("/proc/self/smaps", "re"));
  if (file == nullptr && errno != ENOENT) throw Error(errno, "expose memory", "", advice_on(errno, "open"));
  std::array<char, 4608> line{};
  bool is_it = false;
  while (file != nullptr && std::fgets(line.data(), line.size(), file.get()) != nullptr) {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    if (std::sscanf(line.data(), "%" SCNx64 "-%" SCNx64 " ", &from, &to) == 2) is_it = from <= start && start < to;
    if (is_it && std::strncmp(line.data(), "VmFlags:", 8) == 0) return std::strstr(line.data(), kind.flag) != nullptr;
  }
  return false;
}

bool has(const Kind& kind, const AddressMap& map, const MappedRange& mapping) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (mapping.end - mapping.start <= page) return is_listed_with(kind, mapping.start);
  auto* const first = std::bit_cast<std::byte*>(mapping.start);
  if (::madvise(first, page, kind.set) != 0) return false;
  const auto now = map.at(mapping.start);
  if (!now || now->end >= mapping.end) return true;
  ::madvise(first, page, kind.take_back);
  return false;
}

}  // namespace

MemoryAdvice advice_of(const AddressMap& map, const MappedRange& mapping) {
  auto* const start = std::bit_cast<std::byte*>(mapping.start);
  // For private memory MS_INVALIDATE has no effect, but fails with EBUSY if the memory is locked.
  const bool locked = ::msync(start, mapping.end - mapping.start, MS_INVALIDATE) != 0 && errno == EBUSY;
  return {.dont_fork = has(kDontFork, map, mapping), .dont_dump = has(kDontDump, map, mapping), .locked = locked};
}

void give(const MemoryAdvice& advice, std::span<std::byte> memory) noexcept {
  if (advice.dont_fork) ::madvise(memory.data(), memory.size(), kDontFork.set);
  if (advice.dont_dump) ::madvise(memory.data(), memory.size(), kDontDump.set);
  if (advice.locked) ::mlock2(memory.data(), memory.size(), MLOCK_ONFAULT);
}

}  // namespace wherry::memory
