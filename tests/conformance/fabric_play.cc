// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/fabric_play.hpp"

#include <algorithm>
#include <vector>

namespace wherry::conformance {

std::pair<std::size_t, std::size_t> Rounds::range(std::mt19937_64& random) {
  const std::size_t offset = random() % kBytes;
  const std::size_t most = random() % 4 == 0 ? kBytes - offset : std::min<std::size_t>(kBytes - offset, 300);
  return {offset, 1 + random() % most};
}

std::size_t Rounds::part_of(std::size_t left, std::size_t bytes, std::mt19937_64& random) {
  return std::min<std::size_t>(left, 1 + random() % (bytes / 4 + 1));
}

void Rounds::send(Connection& connection, std::uint64_t seed) {
  std::mt19937_64 random(seed), cuts(seed);
  const Bytes source(connection, kBytes);
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    const auto [offset, bytes] = range(random);
    fill({source.data(), bytes}, seed + round);
    for (std::size_t at = 0; at < bytes;) {
      const std::size_t part = part_of(bytes - at, bytes, cuts);
      ASSERT_TRUE(put_all(connection, kWords + offset + at, {source.data() + at, part}));
      at += part;
    }
    ASSERT_TRUE(connection.signal(0, round, Bell::data));
    ASSERT_EQ(await(connection, 64, round, Bell::space), Wake::rung) << "round " << round;
  }
}

void Rounds::receive(Connection& connection, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    const auto [offset, bytes] = range(random);
    ASSERT_EQ(await(connection, 0, round, Bell::data), Wake::rung) << "round " << round;
    ASSERT_TRUE(filled(connection.segment().subspan(kWords + offset, bytes), seed + round)) << "round " << round;
    ASSERT_TRUE(connection.signal(64, round, Bell::space));
  }
}

void PingPong::serve(Connection& connection, std::uint64_t rounds, By by) {
  std::mt19937_64 random(1);
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    strike(connection, random, round, Bell::data);
    ASSERT_EQ(hear(connection, round, Bell::space, by), Wake::rung) << "lost in round " << round;
  }
}

void PingPong::answer(Connection& connection, std::uint64_t rounds, By by) {
  std::mt19937_64 random(2);
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    ASSERT_EQ(hear(connection, round, Bell::data, by), Wake::rung) << "lost in round " << round;
    strike(connection, random, round, Bell::space);
  }
}

void PingPong::strike(Connection& connection, std::mt19937_64& random, std::uint64_t round, Bell bell) {
  dawdle(random());
  if (random() % 2 == 0) {
    publish(connection, 0, round, bell);
  } else {
    connection.signal(0, round, bell);
  }
  dawdle(random());
}

Wake PingPong::hear(Connection& connection, std::uint64_t round, Bell bell, By by) {
  if (by == By::wait) return await(connection, 0, round, bell);
  const auto come = [&] { return word(connection, 0).load(std::memory_order_acquire) >= round; };
  while (!come()) {  // as an event loop does
    connection.arm(bell);
    if (come()) break;
    if (!readable(connection.descriptor(bell))) return Wake::timeout;
    connection.silence(bell);
    if (connection.peer_gone() && !come()) return Wake::gone;
  }
  connection.disarm(bell);
  return Wake::rung;
}

}  // namespace wherry::conformance
