// SPDX-License-Identifier: Apache-2.0
#include "memory/arena_region.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>

#include "arch/copy.hpp"
#include "layout/bell_page.hpp"
#include "memory/populate.hpp"

namespace wherry::memory {

int RemoteRegion::map_at(std::uint64_t /*offset*/, std::size_t /*bytes*/, int /*protection*/, std::byte* /*where*/) {
  return ENOTSUP;
}

namespace {

/// Repeats `call(done)`, a read or write that continues after `done` bytes, until all bytes are transferred.
template <class Call>
bool transfer(std::size_t bytes, Call&& call) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = call(done);
    if (n == 0 || (n < 0 && errno != EINTR)) return false;
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

void ArenaRegion::make_view() const {
  const std::lock_guard lock(viewing_);
  if (viewed_.load(std::memory_order_relaxed)) return;
  range_ = arena_->map(place_, bytes_);
  if (range_.start != nullptr) prepare_view(range_.start, bytes_);
  viewed_.store(true, std::memory_order_release);  // VIEWED
}

bool ArenaRegion::put(std::uint64_t offset, std::span<const std::byte> source) {
  if (std::byte* const start = map(); start != nullptr) {
    arch::copy_into(start + offset, source.data(), source.size());
    return true;
  }
  return transfer(source.size(), [&](std::size_t done) {
    return ::pwrite(arena_->descriptor(), source.data() + done, source.size() - done,
                    static_cast<off_t>(place_ + offset + done));
  });
}

bool ArenaRegion::get(std::span<std::byte> destination, std::uint64_t offset) {
  if (std::byte* const start = map(); start != nullptr) {
    arch::copy_out_of(destination.data(), start + offset, destination.size());
    return true;
  }
  return transfer(destination.size(), [&](std::size_t done) {
    return ::pread(arena_->descriptor(), destination.data() + done, destination.size() - done,
                   static_cast<off_t>(place_ + offset + done));
  });
}

bool ArenaRegion::signal(std::uint64_t offset, std::uint64_t value) {
  if (std::byte* const start = map(); start != nullptr) {
    reinterpret_cast<layout::Word*>(start + offset)->store(value, std::memory_order_release);  // SIGNAL
    return true;
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);  // SIGNAL: orders the kernel's store after the puts
  return put(offset, std::as_bytes(std::span(&value, 1)));
}

int ArenaRegion::map_at(std::uint64_t offset, std::size_t bytes, int protection, std::byte* where) {
  const int error = arena_->map_at(place_ + offset, bytes, protection, where);
  if (error == 0) ::madvise(where, bytes, MADV_DONTFORK);
  return error;
}

std::byte* OwnRegion::at(std::uint64_t offset) const { return std::bit_cast<std::byte*>(address_ + offset); }

bool OwnRegion::put(std::uint64_t offset, std::span<const std::byte> source) {
  if (!populate({at(offset), source.size()}, Access::write)) return false;
  arch::copy_into(at(offset), source.data(), source.size());
  return true;
}

bool OwnRegion::get(std::span<std::byte> destination, std::uint64_t offset) {
  if (!populate({at(offset), destination.size()}, Access::read)) return false;
  arch::copy_out_of(destination.data(), at(offset), destination.size());
  return true;
}

bool OwnRegion::signal(std::uint64_t offset, std::uint64_t value) {
  if (!populate({at(offset), sizeof value}, Access::write)) return false;
  reinterpret_cast<layout::Word*>(at(offset))->store(value, std::memory_order_release);  // SIGNAL
  return true;
}

}  // namespace wherry::memory
