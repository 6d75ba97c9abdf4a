// SPDX-License-Identifier: Apache-2.0
#include "fabric/inproc/segment.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <wherry/error.hpp>

#include "base/resize.hpp"
#include "base/unique_fd.hpp"

namespace wherry::fabric::inproc {

namespace {

std::byte* map_pages(void* where, std::size_t bytes, int flags, int memfd) {
  void* got = ::mmap(where, bytes, PROT_READ | PROT_WRITE, flags, memfd, 0);
  if (got == MAP_FAILED) {
    throw Error(errno, "map a segment", "",
                std::to_string(bytes) + " bytes were asked for; ask for less, or free some");
  }
  return static_cast<std::byte*>(got);
}

}  // namespace

Segment::Segment(const Offer& offer, Reach reach)
    : own_(offer.memory), far_(offer.memory), bytes_(offer.segment_bytes) {
  if (offer.memory == nullptr) {
    own_ = far_ = map_pages(nullptr, bytes_, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    mapped_ = true;
  } else if (reach == Reach::map) {
    share_callers_pages();
  }
}

// Gives the peer a second mapping of the caller's pages. A peer may still store through its map() after the owner has
// left. It must then reach neither unmapped memory nor the caller's: give_back() replaces the caller's pages by others.
void Segment::share_callers_pages() {
  const UniqueFd memfd(::memfd_create("wherry.inproc", MFD_CLOEXEC));
  if (!memfd.valid() || resize(memfd.get(), bytes_) != 0) {
    throw Error(errno, "share a segment", "",
                advice_for_resize(errno, "raise the limit on open files (ulimit -n), or free memory"));
  }
  far_ = map_pages(nullptr, bytes_, MAP_SHARED, memfd.get());
  mapped_ = true;
  std::memcpy(far_, own_, bytes_);
  map_pages(own_, bytes_, MAP_SHARED | MAP_FIXED, memfd.get());
  shared_ = true;
}

void Segment::give_back() noexcept {
  if (!std::exchange(shared_, false)) return;
  void* copy = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return;  // the memory stays usable, but a peer that still maps it can write it
  std::memcpy(copy, own_, bytes_);
  ::mremap(copy, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, own_);
}

Segment::Segment(Segment&& other) noexcept { *this = std::move(other); }

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(own_, other.own_);
  std::swap(far_, other.far_);
  std::swap(bytes_, other.bytes_);
  std::swap(shared_, other.shared_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

Segment::~Segment() {
  give_back();
  if (mapped_) ::munmap(far_, bytes_);
}

}  // namespace wherry::fabric::inproc
