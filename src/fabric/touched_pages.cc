// SPDX-License-Identifier: Apache-2.0
#include "fabric/touched_pages.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/unique_fd.hpp"

namespace wherry::fabric {
namespace {

/// Of what /proc/PID/pagemap says of a page: it is there, is swapped out, is a file's, or is a guard.
constexpr std::uint64_t kTouched = std::uint64_t{0b1110'0100} << 56;

}  // namespace

std::vector<std::span<const std::byte>> touched_parts(std::span<const std::byte> memory) {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  // Not kept open: in the child of a fork it would tell of the parent.
  const UniqueFd pagemap(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  std::vector<std::span<const std::byte>> parts;
  std::array<std::uint64_t, 512> entries{};
  for (std::size_t at = 0; at < memory.size();) {
    const std::size_t count = std::min(entries.size(), (memory.size() - at) / page);
    const std::size_t bytes = count * sizeof entries[0];
    const auto first = reinterpret_cast<std::uintptr_t>(memory.data() + at) / page;
    const auto place = static_cast<off_t>(first * sizeof entries[0]);
    if (!pagemap.valid() || ::pread(pagemap.get(), entries.data(), bytes, place) != static_cast<ssize_t>(bytes)) {
      return {memory};
    }
    for (std::size_t i = 0; i < count; ++i, at += page) {
      if ((entries[i] & kTouched) == 0) continue;
      const auto found = memory.subspan(at, page);
      if (!parts.empty() && parts.back().data() + parts.back().size() == found.data()) {
        parts.back() = {parts.back().data(), parts.back().size() + page};
      } else {
        parts.push_back(found);
      }
    }
  }
  return parts;
}

}  // namespace wherry::fabric
