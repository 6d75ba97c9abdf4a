// SPDX-License-Identifier: Apache-2.0
// Two threads, each on a core of its own: one copies into memory that both share, the other copies out of it, as a ring
// does. Positions are handed over by one word each way.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "arch/cache_line.hpp"
#include "arch/pause.hpp"
#include "arch/shared_copy.hpp"

namespace wherry::bench {

using Clock = std::chrono::steady_clock;

inline double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

/// The first two cores that this program may run on; twice the same if there is one only.
inline std::array<int, 2> two_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) throw std::runtime_error("cannot tell the cores");
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE && cores.size() < 2; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return {cores.front(), cores.back()};
}

inline void run_on(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(core), &one);
  ::pthread_setaffinity_np(::pthread_self(), sizeof one, &one);
}

/// A position that one side writes and the other reads: on two lines, as processors fetch pairs of them.
struct alignas(2 * arch::kCacheLine) Position {
  std::atomic<std::uint64_t> value{0};
};

/// Looks until `ready()`; on a busy machine the other side may need this core.
template <class Ready>
void look_until(Ready&& ready) {
  constexpr int kLooks = 10000;
  for (int looks = 0; !ready(); ++looks) {
    if (looks < kLooks) {
      arch::pause();
    } else {
      std::this_thread::yield();
    }
  }
}

/// Memory that two threads copy through, with one end's view of it.
class SharedRing {
 public:
  explicit SharedRing(std::size_t bytes) : bytes_(bytes), memory_(bytes + kPage) {
    data_ = memory_.data() + (kPage - reinterpret_cast<std::uintptr_t>(memory_.data()) % kPage);
  }

  /// By the one that writes: waits for space.
  void write(const arch::SharedCopy& copy, const std::vector<std::byte>& message) {
    for (std::size_t done = 0; done < message.size();) {
      const std::size_t count = piece(written_, message.size() - done);
      if (written_ + count > seen_read_ + bytes_) {
        look_until([&] {
          seen_read_ = read_position_.value.load(std::memory_order_acquire);
          return written_ + count <= seen_read_ + bytes_;
        });
      }
      copy.into(data_ + written_ % bytes_, message.data() + done, count);
      written_ += count;
      done += count;
      write_position_.value.store(written_, std::memory_order_release);
    }
  }

  /// By the one that reads: false if `stop()` before all of the message came.
  template <class Stop>
  bool read(const arch::SharedCopy& copy, std::vector<std::byte>& message, Stop&& stop) {
    for (std::size_t done = 0; done < message.size();) {
      if (read_ == seen_written_) {
        look_until([&] {
          seen_written_ = write_position_.value.load(std::memory_order_acquire);
          return seen_written_ != read_ || stop();
        });
        if (seen_written_ == read_) return false;
      }
      const std::size_t count = std::min<std::size_t>(piece(read_, message.size() - done), seen_written_ - read_);
      copy.out(message.data() + done, data_ + read_ % bytes_, count);
      read_ += count;
      done += count;
      if (read_ - returned_ >= bytes_ / 4) {
        returned_ = read_;
        read_position_.value.store(read_, std::memory_order_release);
      }
    }
    return true;
  }

 private:
  [[nodiscard]] std::size_t piece(std::uint64_t position, std::size_t rest) const {
    constexpr std::size_t kMostAtOnce = std::size_t{64} << 10;
    return std::min({rest, kMostAtOnce, bytes_ / 4, static_cast<std::size_t>(bytes_ - position % bytes_)});
  }

  static constexpr std::size_t kPage = 4096;

  std::size_t bytes_;
  std::vector<std::byte> memory_;
  std::byte* data_;
  Position write_position_;
  Position read_position_;
  alignas(2 * arch::kCacheLine) std::uint64_t written_ = 0;
  std::uint64_t seen_read_ = 0;
  alignas(2 * arch::kCacheLine) std::uint64_t read_ = 0;
  std::uint64_t seen_written_ = 0;
  std::uint64_t returned_ = 0;
};

/// GB/s of payload through a ring of `ring` bytes in messages of `size`.
inline double hand_over_rate(const arch::SharedCopy& copy, std::size_t ring, std::size_t size, double sample_ms) {
  const auto cores = two_cores();
  SharedRing shared(ring);
  std::atomic<bool> ended{false};
  std::thread reader([&] {
    run_on(cores[1]);
    std::vector<std::byte> message(size);
    while (shared.read(copy, message, [&] { return ended.load(std::memory_order_acquire); })) continue;
  });
  std::uint64_t bytes = 0;
  double elapsed = 0;
  std::thread writer([&] {
    run_on(cores[0]);
    const std::vector<std::byte> message(size, std::byte{1});
    for (std::size_t lap = 0; lap < 2 * ring; lap += size) shared.write(copy, message);  // warm
    const auto start = Clock::now();
    const std::size_t messages_per_look = std::max<std::size_t>(1, 65536 / size);
    while ((elapsed = ns_since(start)) < sample_ms * 1e6) {
      for (std::size_t i = 0; i < messages_per_look; ++i) shared.write(copy, message);
      bytes += messages_per_look * size;
    }
  });
  writer.join();
  ended.store(true, std::memory_order_release);
  reader.join();
  return static_cast<double>(bytes) / elapsed;
}

/// The median of half a round trip of messages of `size`, in nanoseconds.
inline double half_round_trip(const arch::SharedCopy& copy, std::size_t ring, std::size_t size, double sample_ms) {
  const auto cores = two_cores();
  SharedRing there(ring);
  SharedRing back(ring);
  std::atomic<bool> ended{false};
  std::thread answerer([&] {
    run_on(cores[1]);
    std::vector<std::byte> message(size);
    while (there.read(copy, message, [&] { return ended.load(std::memory_order_acquire); })) {
      back.write(copy, message);
    }
  });
  std::vector<double> times;
  std::thread asker([&] {
    run_on(cores[0]);
    std::vector<std::byte> message(size, std::byte{1});
    const auto begin = Clock::now();
    const std::size_t warm = 2 * ring / size;
    for (std::size_t i = 0; i < warm || ns_since(begin) < sample_ms * 1e6 || times.empty(); ++i) {
      const auto start = Clock::now();
      there.write(copy, message);
      back.read(copy, message, [] { return false; });
      if (i >= warm) times.push_back(ns_since(start) / 2);
    }
  });
  asker.join();
  ended.store(true, std::memory_order_release);
  answerer.join();
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace wherry::bench
