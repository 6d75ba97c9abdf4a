// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/file/program/two_copies.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace wherry::bench::file {
namespace {

using Clock = std::chrono::steady_clock;

/// As Wherry has them by default on processors with an L2 of 1 MiB.
constexpr std::size_t kRing = std::size_t{2} << 20;
constexpr std::size_t kPiece = std::size_t{64} << 10;
constexpr std::chrono::microseconds kPoll{50};
constexpr int kLooksPerClock = 64;

constexpr std::uint64_t kEnd = std::uint64_t{1} << 63;

}  // namespace

void TwoCopies::Word::set(std::uint64_t value) {
  value_.store(value, std::memory_order_release);
  value_.notify_one();
}

std::uint64_t TwoCopies::Word::other_than(std::uint64_t known) const {
  for (const auto end = Clock::now() + kPoll; Clock::now() < end;) {
    for (int look = 0; look < kLooksPerClock; ++look) {
      if (const std::uint64_t value = value_.load(std::memory_order_acquire); value != known) return value;
    }
  }
  value_.wait(known, std::memory_order_acquire);
  return value_.load(std::memory_order_acquire);
}

TwoCopies::TwoCopies(const std::string& path, bool writes) : file_(path, writes), ring_(kRing) {
  (void)ring_.span();  // is made now
  thread_ = std::thread([this] { serve(); });
}

TwoCopies::~TwoCopies() {
  ask(Call::end, 0, 0);
  thread_.join();
}

/// Each call begins at the begin of the ring, which is still in the caches.
void TwoCopies::ask(Call call, std::uint64_t offset, std::size_t bytes) {
  filled_.set(0);
  emptied_.set(0);
  call_ = call;
  offset_ = offset;
  bytes_ = bytes;
  calls_.set(++made_);
}

std::span<std::byte> TwoCopies::piece(std::uint64_t position, std::size_t left) {
  return ring_.span().subspan(position % kRing, std::min(left, kPiece));
}

ssize_t TwoCopies::read_at(std::uint64_t offset, std::span<std::byte> to) {
  ask(Call::read, offset, to.size());
  std::uint64_t done = 0;
  for (std::uint64_t filled = 0; (filled & kEnd) == 0 || done < (filled & ~kEnd);) {
    if (done == filled) filled = filled_.other_than(filled);
    const std::span<const std::byte> from = piece(done, (filled & ~kEnd) - done);
    std::memcpy(to.data() + done, from.data(), from.size());
    done += from.size();
    emptied_.set(done);
  }
  if (result_ < 0) errno = error_;
  return result_ < 0 ? result_ : static_cast<ssize_t>(done);
}

ssize_t TwoCopies::write_at(std::uint64_t offset, std::span<const std::byte> from) {
  ask(Call::write, offset, from.size());
  std::uint64_t emptied = 0;
  for (std::uint64_t done = 0; done < from.size() && (emptied & kEnd) == 0;) {
    const std::span<std::byte> to = piece(done, from.size() - done);
    while (done + to.size() > emptied + kRing && (emptied & kEnd) == 0) emptied = emptied_.other_than(emptied);
    std::memcpy(to.data(), from.data() + done, to.size());
    done += to.size();
    filled_.set(done);
  }
  while ((emptied & kEnd) == 0) emptied = emptied_.other_than(emptied);
  if (result_ < 0) errno = error_;
  return result_ < 0 ? result_ : static_cast<ssize_t>(emptied & ~kEnd);
}

void TwoCopies::serve() {
  for (std::uint64_t served = 0;;) {
    served = calls_.other_than(served);
    if (call_ == Call::end) return;
    call_ == Call::read ? serve_read() : serve_write();
  }
}

void TwoCopies::serve_read() {
  std::uint64_t done = 0;
  std::uint64_t emptied = 0;
  for (result_ = 0; done < bytes_;) {
    const std::span<std::byte> to = piece(done, bytes_ - done);
    while (done + to.size() > emptied + kRing) emptied = emptied_.other_than(emptied);
    result_ = file_.read_at(offset_ + done, to);
    error_ = errno;
    if (result_ <= 0) break;
    done += static_cast<std::uint64_t>(result_);
    if (static_cast<std::size_t>(result_) < to.size()) break;
    if (done < bytes_) filled_.set(done);
  }
  filled_.set(done | kEnd);
}

void TwoCopies::serve_write() {
  std::uint64_t done = 0;
  std::uint64_t filled = 0;
  for (result_ = 0; done < bytes_;) {
    while (filled == done) filled = filled_.other_than(filled);
    const std::span<const std::byte> from = piece(done, filled - done);
    result_ = file_.write_at(offset_ + done, from);
    error_ = errno;
    if (result_ <= 0) break;
    done += static_cast<std::uint64_t>(result_);
    if (static_cast<std::size_t>(result_) < from.size()) break;
    if (done < bytes_) emptied_.set(done);
  }
  emptied_.set(done | kEnd);
}

}  // namespace wherry::bench::file
