// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/sample_memory.hpp"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>

#include "base/clock.hpp"

namespace wherry::bench {
namespace {

constexpr std::chrono::seconds kPostTimeout{20};

// Each kind of thing begins on a page of its own, so that reports do not share lines with what is waited on.
std::size_t pages(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

// std::atomic::wait is for the threads of one process only.
void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, nullptr, nullptr, 0);
}

}  // namespace

void StartBarrier::pass(std::uint32_t all) {
  if (arrived_.fetch_add(1) + 1 == all) {
    opened_at_ = static_cast<std::int64_t>(monotonic_ns());
    open_ = 1;
    futex(open_, FUTEX_WAKE, INT_MAX);
  }
  while (open_ == 0) futex(open_, FUTEX_WAIT, 0);
}

void Report::set_error(std::string_view text) {
  const std::size_t length = std::min(text.size(), sizeof error - 1);
  std::memcpy(error, text.data(), length);
  error[length] = '\0';
}

SampleMemory::SampleMemory(std::uint32_t senders, std::size_t latencies, std::uint32_t bystanders, RemoteRank* remote)
    : ranks_(senders + 1),
      processes_(ranks_ + bystanders),
      remote_(remote),
      latencies_(latencies),
      mapped_(pages(sizeof(Shared)) + pages(ranks_ * sizeof(Note)) + pages(processes_ * sizeof(Report)) +
              2 * latencies * sizeof(double)),
      memory_(static_cast<std::byte*>(
          // Populated: a page fault on the way would show among the latencies.
          ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0))) {
  if (memory_ == MAP_FAILED) throw std::bad_alloc();
  shared_ = new (memory_) Shared;
  notes_ = new (memory_ + pages(sizeof(Shared))) Note[ranks_];
  reports_ = new (memory_ + pages(sizeof(Shared)) + pages(ranks_ * sizeof(Note))) Report[processes_];
}

SampleMemory::~SampleMemory() { ::munmap(memory_, mapped_); }

void SampleMemory::post(std::uint32_t rank, std::string_view bytes) {
  if (rank >= ranks_ || bytes.size() > kExchangeBytes) throw std::logic_error("the exchange area has no room for that");
  Note& note = notes_[rank];
  if (remote_ != nullptr) return remote_->post(bytes);
  std::memcpy(note.text, bytes.data(), bytes.size());
  note.length.store(static_cast<std::uint32_t>(bytes.size() + 1), std::memory_order_release);
}

std::string SampleMemory::read(std::uint32_t rank) {
  if (rank >= ranks_) throw std::logic_error("there is no such rank");
  if (remote_ != nullptr && rank == remote_->rank()) return remote_->read();
  const Note& note = notes_[rank];
  const auto end = std::chrono::steady_clock::now() + kPostTimeout;
  while (true) {
    if (const std::uint32_t length = note.length.load(std::memory_order_acquire); length != 0) {
      return {note.text, length - 1};
    }
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("another process did not say where it is");
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

void SampleMemory::pass(StartBarrier& barrier) {
  if (remote_ == nullptr) return barrier.pass(ranks_);
  const std::uint32_t other = remote_->rank();
  remote_->meet(report(1 - other), report(other));
  barrier.pass(1);
}

std::uint64_t SampleMemory::longest(std::uint64_t Report::* messages) {
  std::uint64_t longest = 0;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) longest = std::max(longest, report(rank).*messages);
  return longest;
}

Report& SampleMemory::report(std::uint32_t rank) { return reports_[rank]; }

std::span<double> SampleMemory::latencies(std::uint32_t rank) {
  auto* first = reinterpret_cast<double*>(memory_ + mapped_ - 2 * latencies_ * sizeof(double));
  return {first + rank * latencies_, latencies_};
}

}  // namespace wherry::bench
