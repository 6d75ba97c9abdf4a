// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include <wherry/error.hpp>

#include "base/refused_call.hpp"
#include "base/resize.hpp"
#include "fabric/shm/process_memory.hpp"
#include "memory/huge_pages.hpp"
#include "memory/sealed_memory.hpp"

namespace wherry::fabric::shm {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

[[noreturn]] void fail(const char* what, const std::string& advice) { throw Error(errno, what, "", advice); }

std::byte* map_shared(void* where, std::size_t bytes, int fd, off_t offset, int flags,
                      int protection = PROT_READ | PROT_WRITE) {
  if (where == nullptr && offset == 0 && bytes >= 2 * memory::kHugePage) {
    if (std::byte* aligned = memory::map_for_huge_pages(fd, 0, bytes, protection, MAP_SHARED | flags)) return aligned;
  }
  void* start = ::mmap(where, bytes, protection, MAP_SHARED | flags, fd, offset);
  return start == MAP_FAILED ? nullptr : static_cast<std::byte*>(start);
}

UniqueFd make_memfd(std::size_t bytes) {
  UniqueFd fd(::memfd_create("wherry.segment", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) fail("make shared memory", advice_on(errno, "memfd_create"));
  if (resize(fd.get(), bytes) != 0) fail("size shared memory", advice_for_resize(errno, "use a smaller ring"));
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) fail("seal shared memory", "the kernel must support memfd seals");
  return fd;
}

}  // namespace

Mapping::Mapping(Mapping&& other) noexcept
    : start_(std::exchange(other.start_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(start_, other.start_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (start_ != nullptr) ::munmap(start_, bytes_);
}

OwnMemory::OwnMemory(std::size_t segment_bytes, std::byte* caller, bool compact) {
  const std::size_t place = layout::segment_place(compact);
  if (compact) segment_bytes -= place;
  memfd_ = make_memfd(place + segment_bytes);
  const std::size_t mapped = caller == nullptr ? place + segment_bytes : place;
  std::byte* start = map_shared(nullptr, mapped, memfd_.get(), 0, 0);
  if (start == nullptr) fail("map shared memory", "use a smaller ring, or raise the address space limit (ulimit -v)");
  mapping_ = Mapping(start, mapped);
  auto* page = new (start) layout::BellPage{};
  page->version = layout::kBellPageVersion;
  page->segment_bytes = segment_bytes;
  page->recognition = recognition();
  if (caller == nullptr) {
    segment_ = {start + place, segment_bytes};
  } else {
    segment_ = {caller, segment_bytes};
    share_callers_pages(caller);
  }
}

OwnMemory& OwnMemory::operator=(OwnMemory&& other) noexcept {
  if (this != &other) {
    if (callers_) give_back_callers_pages();
    memfd_ = std::move(other.memfd_);
    mapping_ = std::move(other.mapping_);
    segment_ = std::exchange(other.segment_, {});
    callers_ = std::exchange(other.callers_, false);
  }
  return *this;
}

OwnMemory::~OwnMemory() {
  if (callers_) give_back_callers_pages();
}

void OwnMemory::share_callers_pages(std::byte* caller) {
  std::size_t copied = 0;
  while (copied < segment_.size()) {
    const ssize_t n = ::pwrite(memfd_.get(), caller + copied, segment_.size() - copied,
                               static_cast<off_t>(layout::kBellPageBytes + copied));
    if (n <= 0)
      fail("share the caller's memory", "it must be readable, and the machine must have that much memory free");
    copied += static_cast<std::size_t>(n);
  }
  if (map_shared(caller, segment_.size(), memfd_.get(), layout::kBellPageBytes, MAP_FIXED) == nullptr) {
    fail("share the caller's memory", "it must be page-aligned, private and writable");
  }
  callers_ = true;
}

void OwnMemory::give_back_callers_pages() {
  void* copy = ::mmap(nullptr, segment_.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return;  // The caller's memory remains usable, but the peer could still reach it.
  std::memcpy(copy, segment_.data(), segment_.size());
  ::mremap(copy, segment_.size(), segment_.size(), MREMAP_MAYMOVE | MREMAP_FIXED, segment_.data());
}

namespace {

Mapping map_checked(int memfd, std::size_t bytes, int protection, int& error) {
  if (!memory::is_sealed_memory(memfd, bytes)) {
    error = EPROTO;
    return {};
  }
  std::byte* start = map_shared(nullptr, bytes, memfd, 0, 0, protection);
  error = start == nullptr ? errno : 0;
  if (error == EPERM || error == EACCES) error = EPROTO;  // Sealed against writing, or opened for reading only.
  return {start, start == nullptr ? 0 : bytes};
}

}  // namespace

Mapping map_peers_memory(int memfd, std::size_t segment_bytes, int& error, bool compact) {
  return map_checked(memfd, layout::segment_place(compact) + segment_bytes, PROT_READ | PROT_WRITE, error);
}

Mapping map_shown_memory(int memfd, std::size_t bytes, int& error) {
  return map_checked(memfd, bytes, PROT_READ, error);
}

}  // namespace wherry::fabric::shm
