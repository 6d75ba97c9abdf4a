// SPDX-License-Identifier: Apache-2.0
// Millions of messages from many senders that doze at random moments into one poller of streams that are idle and
// active by turns: no lost wake-up (the watchdog's to find), no lost or altered byte.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <deque>
#include <thread>

#include <wherry/poller.hpp>

#include "base/child_process.hpp"
#include "tests/stress/options.hpp"
#include "tests/stress/watchdog.hpp"

namespace wherry::stress {
namespace {

constexpr std::size_t kMostSenders = 24;

struct Case {
  const char* name;
  const char* fabric;
  std::size_t senders;
  std::size_t ring;
  double share;  ///< of the operations
};

struct Scene {
  std::array<Progress, kMostSenders> senders;
  Progress receiver;
};

/// Receives from all streams through one poller, in random ways, until each has ended.
class Polling : public Side {
 public:
  Polling(std::vector<Stream>& streams, const Pattern& pattern, std::uint64_t seed, Progress& progress)
      : Side(streams.front(), pattern, seed, progress), streams_(streams), positions_(streams.size()) {
    for (std::size_t i = 0; i < streams.size(); ++i) poller_.add(streams[i], i);
  }

  /// Returns how many bytes came from each.
  std::vector<std::uint64_t> run() {
    std::array<Poller::Token, 8> ready{};
    for (std::size_t open = streams_.size(); open > 0;) {
      begin(Doing::polling);
      const auto most = std::span(ready).first(1 + below(ready.size()));
      // For ever, most of the time: a wake-up lost here is what the watchdog is for.
      const std::size_t count = below(16) != 0 ? poller_.wait(most) : poller_.wait(most, std::chrono::microseconds(50));
      for (const Poller::Token token : most.first(count)) open -= serve(token) ? 0 : 1;
      maybe_doze();
    }
    begin(Doing::done);
    return positions_;
  }

 private:
  /// False at the end.
  bool serve(std::size_t which) {
    switch (below(8)) {
      case 0:
        return true;  // A stream left unread is reported again.
      case 1:
        return receive(which, 10) && block(which);
      case 2:
        return read_in_place(which);
      case 3:
        return receive(which, random_size());
      default:
        return drain(which);
    }
  }

  bool drain(std::size_t which) {
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t before = positions_[which];
      if (!receive(which, 65'536)) return false;
      if (positions_[which] == before) break;
    }
    return true;
  }

  bool receive(std::size_t which, std::size_t size) {
    begin(Doing::try_receive);
    if (buffer_.size() < size) buffer_.resize(size);
    return took(which, streams_[which].try_receive(std::span(buffer_).first(size)));
  }

  /// Sleeps on the bell behind the poller's back, for a moment.
  bool block(std::size_t which) {
    begin(Doing::waiting);
    const Result result = streams_[which].wait_readable(std::chrono::microseconds(below(100)));
    if (result.failed() && result.error != ETIMEDOUT) fail("wait_readable", result);
    return true;
  }

  bool read_in_place(std::size_t which) {
    begin(Doing::zero_copy);
    const ConstRegions bytes = streams_[which].peek(random_size());
    if (bytes.empty()) return true;
    buffer_.assign(bytes.first.begin(), bytes.first.end());
    return took(which, streams_[which].consume(bytes.first.size()));
  }

  bool took(std::size_t which, const Result& result) {
    if (result.would_block()) return true;
    if (result.ended()) {
      streams_[which].close();
      return false;
    }
    if (!result.ok()) fail("receive", result);
    if (!pattern_.matches(std::span(buffer_).first(result.bytes), positions_[which])) fail("altered bytes", result);
    positions_[which] += result.bytes;
    count(result.bytes, 0);
    return true;
  }

  std::vector<Stream>& streams_;
  std::vector<std::uint64_t> positions_;
  std::vector<std::byte> buffer_;
  Poller poller_;
};

class PollerStress : public ::testing::TestWithParam<Case> {
 protected:
  PollerStress() { std::printf("--seed=%" PRIu64 " --operations=%" PRIu64 "\n", options().seed, options().operations); }

  [[nodiscard]] static bool in_processes() { return GetParam().fabric == std::string_view("shm"); }
  [[nodiscard]] static std::string address() {
    return std::string("wherry+").append(GetParam().fabric).append("://*:*");
  }

  bool send(Stream& stream, std::size_t which) const {
    const auto each =
        static_cast<std::uint64_t>(static_cast<double>(options().operations) * GetParam().share) / GetParam().senders;
    try {
      (void)Sending(stream, pattern_, options().seed * 100 + which, scene_->senders[which]).run(each);
      return true;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "sender %zu: %s; --seed=%" PRIu64 "\n", which, error.what(), options().seed);
      std::_Exit(1);  // The others wait for this one.
    }
  }

  /// Starts sender `which` and returns this side's end.
  Stream start(Listener& listener, std::size_t which) {
    const std::string where = listener.local().to_string();
    if (in_processes()) {
      children_.emplace_back([this, which, where] {
        Stream stream = connect(where, {}, kConnectTimeout);
        return send(stream, which);
      });
      return listener.accept(kConnectTimeout);
    }
    Connecting connecting = start_connect(where);
    Stream stream = listener.accept(kConnectTimeout);
    connectors_.push_back(std::move(connecting.try_finish().value()));
    return stream;
  }

  /// Threads, once no process is forked any more.
  void start_threads() {
    for (std::size_t i = 0; i < connectors_.size(); ++i) threads_.emplace_back([this, i] { send(connectors_[i], i); });
  }

  void expect_ended_well() {
    for (std::thread& thread : threads_) thread.join();
    for (Child& child : children_) EXPECT_EQ(child.wait(), 0);
  }

  [[nodiscard]] std::vector<Watchdog::Watched> all_sides() const {
    std::vector<Watchdog::Watched> sides{{"poller", &scene_->receiver}};
    for (std::size_t i = 0; i < GetParam().senders; ++i)
      sides.push_back({"sender " + std::to_string(i), &scene_->senders[i]});
    return sides;
  }

  const Pattern pattern_{options().seed};
  SharedValue<Scene> scene_;
  std::deque<Stream> connectors_;
  std::vector<std::thread> threads_;
  std::vector<Child> children_;
};

TEST_P(PollerStress, EveryByteOfEverySenderArrives) {
  Listener listener = listen(address(), {.ring_bytes = GetParam().ring});
  std::vector<Stream> streams;
  for (std::size_t i = 0; i < GetParam().senders; ++i) streams.push_back(start(listener, i));
  const Watchdog watchdog(all_sides(), [&] {
    for (const Child& child : children_) child.kill();
  });
  start_threads();
  std::vector<std::uint64_t> received;
  try {
    received = Polling(streams, pattern_, options().seed, scene_->receiver).run();
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what() << "; --seed=" << options().seed;
    std::fflush(nullptr);
    std::_Exit(1);
  }
  expect_ended_well();
  std::uint64_t sleeps = 0;
  for (std::size_t i = 0; i < received.size(); ++i) {
    EXPECT_EQ(received[i], scene_->senders[i].bytes) << "from sender " << i;
    sleeps += scene_->senders[i].sleeps;
  }
  std::printf("%" PRIu64 " receives, %" PRIu64 " sleeps of senders\n", scene_->receiver.operations.load(), sleeps);
}

INSTANTIATE_TEST_SUITE_P(, PollerStress,
                         ::testing::Values(Case{"inproc_1", "inproc", 1, 4096, 0.3},
                                           Case{"inproc_8", "inproc", 8, 65536, 0.8},
                                           Case{"inproc_24", "inproc", 24, 4096, 0.5},
                                           Case{"inproc_put_8", "inproc-put", 8, 4096, 0.2},
                                           Case{"shm_1", "shm", 1, 4096, 0.5}, Case{"shm_3", "shm", 3, 65536, 1.2},
                                           Case{"shm_24", "shm", 24, 65536, 1.2}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace wherry::stress
