// SPDX-License-Identifier: Apache-2.0
#include "lease.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <wherry/error.hpp>

namespace wherry::root {

Lease::Lease(std::uint64_t number, std::size_t addresses) : number_(number) {
  // A large range is aligned to huge pages, so that whole 2 MiB blocks of what is exposed can become huge pages.
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  const std::size_t more = addresses < kHuge ? 0 : kHuge;
  void* const got = ::mmap(nullptr, addresses + more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) {
    throw Error(ENOMEM, "reserve addresses for a file", "",
                "allow smaller files, or raise the limit of addresses (ulimit -v)");
  }
  auto* const start = static_cast<std::byte*>(got);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(start) % kHuge;
  const std::size_t before = more == 0 || past == 0 ? 0 : kHuge - past;
  if (before != 0) ::munmap(start, before);
  if (before != more) ::munmap(start + before + addresses, more - before);
  memory_ = {start + before, addresses};
}

Lease::~Lease() {
  trim();
  ::munmap(memory_.data(), memory_.size());
}

void Lease::trim() {
  backed_ = 0;
  if (exposed_ != 0) ::madvise(memory_.data(), exposed_, MADV_REMOVE);
}

void Lease::expose(Windows windows, std::uint64_t offset, std::size_t from, std::size_t to) {
  // Only the exposed part is writable: the rest does not count towards RLIMIT_DATA.
  ::mprotect(memory_.data() + from, to - from, PROT_READ | PROT_WRITE);
  windows.add(memory_.subspan(from, to - from), Access::read_write, offset + from);
  exposed_ = std::max(exposed_, to);
  // A forked child does not need this memory, and fork would have to copy it.
  ::madvise(memory_.data() + from, to - from, MADV_DONTFORK);
}

}  // namespace wherry::root
