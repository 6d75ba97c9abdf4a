// SPDX-License-Identifier: Apache-2.0
//
// Readers, fillers, writers and droppers at once, as threads and as processes, some of which are killed. The oracle: no
// hit is older than what any thread or process saw before it began, and none is a mixture.
#include <sys/wait.h>

#include <random>
#include <thread>

#include "base/child_process.hpp"
#include "file/cache.hpp"
#include "tests/common/file_cache.hpp"
#include "tests/common/time_limit.hpp"

namespace wherry::file {
namespace {

using std::byte;

// What a writer writes at once: its version in each word. Four to a block, so that writers meet in blocks.
constexpr std::size_t kStripe = kBlockBytes / 4;
constexpr std::size_t kWords = kStripe / sizeof(std::uint64_t);
constexpr std::size_t kStripes = 96 * 4;  // more blocks than the smallest cache has
constexpr unsigned kWriters = 2;

struct Game {
  std::array<std::atomic<std::uint64_t>, kStripes> seen{};  // the youngest version seen so far
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> hits{0}, fills{0}, lost{0}, writes{0}, failures{0};
  std::atomic<std::uint64_t> wrong_stripe{0}, wrong_version{0}, wrong_least{0};
};

void raise_to(std::atomic<std::uint64_t>& word, std::uint64_t least) {
  std::uint64_t now = word.load();
  while (now < least && !word.compare_exchange_weak(now, least)) continue;
}

using Stripe = std::array<std::uint64_t, kWords>;

class Player {
 public:
  Player(Game& game, Cache& cache, const std::string& path, unsigned seed)
      : game_(game), cache_(cache), fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC)), random_(seed) {
    struct ::stat status{};
    if (!fd_.valid() || ::fstat(fd_.get(), &status) != 0) throw std::system_error(errno, std::system_category(), path);
    key_ = Key(status);
    validate();
  }

  /// Of those stripes that are its own.
  void write(unsigned writer) {
    const std::size_t stripe = random_() % (kStripes / kWriters) * kWriters + writer;
    Stripe words;
    words.fill(++version_ * kWriters + writer);
    {
      const bool whole = random_() % 16 == 0;
      const Change known(cache_, key_, stripe * kStripe, whole ? 0 : kStripe);
      if (whole) {
        const Change unknown(cache_, key_);
        put(stripe, words);
      } else {
        put(stripe, words);
      }
    }
    raise_to(game_.seen[stripe], words[0]);
    ++game_.writes;
  }

  void read() {
    const std::size_t stripe = random_() % kStripes;
    const std::uint64_t least = game_.seen[stripe].load();
    Stripe words;
    const auto bytes = std::as_writable_bytes(std::span(words));
    if (cache_.read(file_, stripe * kStripe, bytes)) {
      judge(stripe, words, least);
      ++game_.hits;
    } else {
      read_from_kernel(stripe, words);
    }
    raise_to(game_.seen[stripe], *std::ranges::max_element(words));
  }

  void disturb() {
    switch (random_() % 8) {
      case 0:
        return cache_.drop(key_, random_() % (kStripes * kStripe), kStripe);
      case 1:
        return cache_.drop_all(key_);
      case 2:
        return cache_.unmark(cache_.mark(key_));
      case 3:
        return cache_.unmark(cache_.mark_all());
      case 4:  // the place may become another file's
        for (std::uint64_t i = 0; i < 4 * layout::kFileSlots; ++i) (void)cache_.open(Key(random_() % 8, i));
        return validate();
      default:
        return validate();
    }
  }

  /// As a program that opens the file anew, or expects that another has changed it.
  void validate() {
    for (int tries = 0; tries < 100; ++tries) {
      struct ::stat status{};
      ::fstat(fd_.get(), &status);
      if (file_.none()) file_ = cache_.open(key_);
      const Validity validity = cache_.validate(file_, Stamp(status, Stamp::now() + 3'600'000'000'000));
      if (validity == Validity::usable) return;
      if (validity == Validity::gone) file_ = {};
    }
  }
  std::mt19937& random() { return random_; }

 private:
  void put(std::size_t stripe, const Stripe& words) {
    if (::pwrite(fd_.get(), words.data(), sizeof words, static_cast<off_t>(stripe * kStripe)) != sizeof words) {
      ++game_.failures;
    }
  }

  void read_from_kernel(std::size_t stripe, Stripe& words) {
    const std::uint64_t block = stripe * kStripe / kBlockBytes;
    Fill fill = cache_.fill(file_, block, random_() % 2 == 0 ? Admission::first_touch : Admission::second_touch);
    if (!fill) {
      if (::pread(fd_.get(), words.data(), sizeof words, static_cast<off_t>(stripe * kStripe)) != sizeof words) {
        ++game_.failures;
      }
      if (random_() % 64 == 0) validate();
      return;
    }
    const ssize_t bytes = ::pread(fd_.get(), fill.memory().data(), kBlockBytes, static_cast<off_t>(fill.offset()));
    if (bytes != static_cast<ssize_t>(kBlockBytes)) ++game_.failures;
    std::memcpy(words.data(), fill.memory().data() + stripe * kStripe % kBlockBytes, sizeof words);
    ++(fill.publish(kBlockBytes) ? game_.fills : game_.lost);
  }

  void judge(std::size_t stripe, const Stripe& words, std::uint64_t least) {
    const auto [low, high] = std::ranges::minmax(words);
    if (low == high && low >= least) return;
    game_.wrong_stripe = stripe;
    game_.wrong_version = low;
    game_.wrong_least = least;
    ++game_.failures;
  }

  Game& game_;
  Cache& cache_;
  UniqueFd fd_;
  std::mt19937 random_;
  Key key_;
  File file_;
  std::uint64_t version_ = static_cast<std::uint64_t>(steady_ns());  // those of a later process are younger
};

class FileCacheGame : public ::testing::Test {
 protected:
  FileCacheGame() : file_(kStripes * kStripe) {
    const std::vector<byte> zeroes(kStripes * kStripe);
    file_.write(0, zeroes);
  }

  void play(Cache& cache, unsigned role, unsigned seed) {
    Player player(*game_, cache, file_.path(), seed);
    while (!game_->over) {
      if (role < kWriters && player.random()() % 4 == 0) player.write(role);
      if (role == kWriters && player.random()() % 64 == 0) player.disturb();
      player.read();
    }
  }

  void expect_right() const {
    EXPECT_EQ(game_->failures, 0U) << "stripe " << game_->wrong_stripe << " had " << game_->wrong_version
                                   << " where somebody had seen " << game_->wrong_least;
    EXPECT_EQ(broken_invariant(*segment_), "");
    RecordProperty("hits", std::to_string(game_->hits));
    std::printf("%lu hits, %lu fills, %lu lost fills, %lu writes\n", game_->hits.load(), game_->fills.load(),
                game_->lost.load(), game_->writes.load());
  }
  [[nodiscard]] bool enough() const {
    const std::uint64_t wanted = soaking() ? 10'000'000 : 100'000;
    return game_->hits > wanted && game_->writes > wanted / 100 && game_->lost > (soaking() ? 1000 : 10);
  }

  TestSegment segment_;
  TestFile file_;
  SharedValue<Game> game_;
};

TEST_F(FileCacheGame, ThreadsNeverReadABlockOlderThanTheLastChange) {
  TestCache one(segment_);
  TestCache other(segment_);
  std::vector<std::thread> threads;
  for (unsigned role = 0; role < 5; ++role) {
    threads.emplace_back([&, role] { play(role % 2 == 0 ? *one : *other, role, role); });
  }
  const TimeLimit limit(std::chrono::seconds(3));
  while (!enough() && !limit.over() && game_->failures == 0) ::usleep(1000);
  game_->over = true;
  for (std::thread& thread : threads) thread.join();
  expect_right();
  EXPECT_GT(game_->hits, 0U);
}

TEST_F(FileCacheGame, ProcessesThatAreKilledLeaveNothingOldBehind) {
  const auto player = [&](unsigned role, unsigned seed) {
    return [this, role, seed] {
      TestCache own(segment_);
      play(*own, role, seed);
      return true;
    };
  };
  std::vector<Child> survivors;
  survivors.emplace_back(player(3, 3));
  std::mt19937 random(1);
  const TimeLimit limit(std::chrono::seconds(3));
  for (unsigned round = 0; (round < 30 || soaking()) && !enough() && !limit.over(); ++round) {
    Child first(player(0, 10 * round));
    Child second(player(1, 10 * round + 1));
    Child third(player(2, 10 * round + 2));
    ::usleep(static_cast<useconds_t>(20'000 + random() % 20'000));
    for (Child* child : {&first, &second, &third}) {
      const auto pid = static_cast<std::uint64_t>(child->pid());
      child->kill();
      child->wait();
      for (std::uint64_t number = 1; number <= 16; ++number) {
        if (segment_->client(number).pid == pid) repair(*segment_, number, false);
      }
    }
  }
  game_->over = true;
  EXPECT_EQ(survivors.front().wait(), 0);
  expect_right();
}

}  // namespace
}  // namespace wherry::file
