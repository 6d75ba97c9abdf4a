// SPDX-License-Identifier: Apache-2.0
// A link over a library of tagged messages that are started and complete later (UCX, libfabric): several are under way
// at a time.
#pragma once

#include <sched.h>

#include <algorithm>
#include <set>
#include <thread>

#include "bench/systems/libraries/library.hpp"

namespace wherry::bench {

/// How many requests are under way: as the OSU bandwidth test has it, where the payload is not read. With the
/// payload written and read each request needs a buffer of its own, and more buffers than a cache holds cost more than
/// a longer window brings; what no cache holds anyway only gains by it.
inline std::size_t window_of(const Sample& sample) {
  constexpr std::size_t kSmall = 64 << 10;
  constexpr std::size_t kPrivateCache = 2 << 20;
  constexpr std::size_t kSharedCache = 64 << 20;
  if (sample.question != Question::stream) return 1;
  if (!sample.touched) return sample.size <= kSmall ? 64 : 4;
  if (sample.size <= kSmall) return std::clamp<std::size_t>(4 * kSmall / std::max<std::size_t>(sample.size, 1), 4, 64);
  return sample.size <= kPrivateCache || sample.size > kSharedCache ? 2 : 1;
}

/// What a process does while a request is not complete. These libraries look again and again, which is best as long as
/// each process has a core; the others want them to give way, or to sleep until the library's descriptor is ready.
enum class Waiting : std::uint8_t { spin, yield, sleep };

inline Waiting waiting_of(const Sample& sample) {
  if (sample.question == Question::asleep) return Waiting::sleep;
  const bool pinned = sample.senders == 1 && !sample.cores.empty();
  const std::size_t cores =
      pinned ? std::set<int>(sample.cores.begin(), sample.cores.end()).size() : std::thread::hardware_concurrency();
  return sample.senders + 1 > cores ? Waiting::yield : Waiting::spin;
}

/// Requests is a library's side of it, for the two windows' slots:
///   Requests(const Place&, std::size_t slots, ...)
///   bool start_send(slot, bytes), start_receive(slot, buffer)    false: no room now; a slot has one request at a time
///   bool sent(slot)                                              never used, or complete
///   bool received(slot), std::size_t length(slot)
///   bool start_flush(), flushed()                                everything sent arrives without this side
///   bool progress()                                              whether anything happened
///   void sleep()                                                 until progress() has something to do
template <class Requests>
class WindowedLink final : public Link {
 public:
  template <class... Arguments>
  explicit WindowedLink(const Place& place, Arguments... arguments)
      : window_(window_of(place.sample)),
        waiting_(waiting_of(place.sample)),
        requests_(place, window_, arguments...),
        outgoing_(place.sample.size, place.sample.touched ? window_ : 1),
        incoming_(place.sample.size, place.sample.touched ? window_ + 1 : 1) {
    if (place.receives() || place.sample.question != Question::stream) {
      while (posted_ < window_) post(posted_);
    }
    greet(*this, place);
  }

  std::span<std::byte> prepare() override {
    const std::size_t slot = sends_ % window_;
    wait([&] { return requests_.sent(slot); });
    return outgoing_.at(sends_);
  }

  /// UCX and libfabric connect by and by, in the calls of both sides.
  [[nodiscard]] bool opens_alone() const override { return false; }

  void send() override {
    wait([&] { return requests_.start_send(sends_ % window_, outgoing_.at(sends_)); });
    ++sends_;
  }

  void finish() override {
    for (std::size_t slot = 0; slot < window_; ++slot) {
      wait([&] { return requests_.sent(slot); });
    }
    wait([&] { return requests_.start_flush(); });
    wait([&] { return requests_.flushed(); });
  }

  std::span<const std::byte> receive() override {
    const std::size_t slot = receives_ % window_;
    wait([&] { return requests_.received(slot); });
    const std::span<std::byte> message = incoming_.at(receives_++);
    const std::size_t length = requests_.length(slot);
    // Into the buffer that the last call gave out: there is one more than requests.
    post(slot);
    return message.first(std::min(length, message.size()));
  }

 private:
  void post(std::size_t slot) {
    wait([&] { return requests_.start_receive(slot, incoming_.at(posted_)); });
    ++posted_;
  }

  template <class Done>
  void wait(Done done) {
    constexpr int kLooksBeforeYield = 10;
    constexpr int kLooksBeforeSleep = 1000;
    for (int looks = 0; !done();) {
      looks = requests_.progress() ? 0 : looks + 1;
      if (waiting_ == Waiting::yield && looks > kLooksBeforeYield) sched_yield();
      if (waiting_ == Waiting::sleep && looks > kLooksBeforeSleep) requests_.sleep();
    }
  }

  std::size_t window_;
  Waiting waiting_;
  Requests requests_;
  PrivateBuffers outgoing_;
  PrivateBuffers incoming_;
  std::uint64_t sends_ = 0;
  std::uint64_t receives_ = 0;
  std::uint64_t posted_ = 0;
};

}  // namespace wherry::bench
