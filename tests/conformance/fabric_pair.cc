// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/fabric_pair.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <stdexcept>
#include <thread>

#include "arch/pause.hpp"

namespace wherry::conformance {

bool readable(int descriptor, std::chrono::milliseconds timeout) {
  pollfd entry{.fd = descriptor, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, static_cast<int>(timeout.count())) == 1;
}

fabric::Greeting greeting_of(std::uint8_t number) {
  fabric::Greeting greeting;
  for (std::size_t i = 0; i < greeting.size(); ++i) greeting[i] = static_cast<std::byte>(number + i);
  return greeting;
}

namespace {

template <class Try>
std::unique_ptr<Connection> poll_for(const char* what, int descriptor, Try attempt) {
  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  while (std::chrono::steady_clock::now() < deadline) {
    if (auto connection = attempt()) return connection;
    readable(descriptor, 100ms);
  }
  throw std::runtime_error(std::string(what) + ": nothing came");
}

}  // namespace

std::unique_ptr<Connection> accept(fabric::Listener& listener, const Offer& offer) {
  return poll_for("accept", listener.descriptor(), [&] { return listener.try_accept(offer); });
}

std::unique_ptr<Connection> finish(fabric::Connecting& connecting) {
  return poll_for("finish", connecting.descriptor(), [&] { return connecting.try_finish(); });
}

FabricTest::FabricTest()
    : faults_("WHERRY_FAULTS", std::string(GetParam().faults).c_str()),
      not_there_(GetParam().between_hosts ? move_to_near_host() : ""),
      fabric_(fabric::find(GetParam().fabric)) {}

void FabricTest::SetUp() {
  if (!not_there_.empty()) GTEST_SKIP() << not_there_;
}

std::function<void()> FabricTest::there(const std::function<void()>& play) {
  return [play] {
    if (GetParam().between_hosts) move_to_far_host();
    play();
  };
}

Ends FabricTest::connect_pair(const Offer& connector, const Offer& acceptor) const {
  const auto listener = listen();
  const auto connecting = tested().connect(listener->local(), connector);
  Ends ends;
  ends.acceptor = accept(*listener, acceptor);
  ends.connector = finish(*connecting);
  return ends;
}

std::atomic<std::uint64_t>& word(const Connection& connection, std::uint64_t offset) {
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(connection.segment().data() + offset);
}

Wake await(Connection& connection, std::uint64_t offset, std::uint64_t value, Bell bell) {
  const auto come = [&] { return word(connection, offset).load(std::memory_order_acquire) >= value; };
  const Deadline deadline = in(kTimeout);
  while (!come()) {
    connection.arm(bell);
    if (come()) break;
    const Wake wake = connection.wait(bell, deadline);
    // A word that came without a ring is a lost wake-up; one that came before a death is no death yet.
    if (wake == Wake::timeout || (wake == Wake::gone && !come())) return wake;
  }
  connection.disarm(bell);
  return Wake::rung;
}

Wake wait_for_end(Connection& connection, Bell bell) {
  const Deadline deadline = in(kTimeout);
  Wake wake = Wake::rung;
  while (wake == Wake::rung) {
    connection.arm(bell);
    wake = connection.wait(bell, deadline);
  }
  return wake;
}

namespace {

std::size_t put_once_there_is_room(Connection& connection, std::uint64_t offset, std::span<const std::byte> source) {
  std::size_t taken = 0;
  while (taken == 0 && !connection.peer_gone()) {
    connection.arm(Bell::space);
    taken = connection.put(offset, source);
    if (taken == 0 && connection.wait(Bell::space, in(kTimeout)) != Wake::rung) break;
  }
  connection.disarm(Bell::space);
  return taken;
}

}  // namespace

bool put_all(Connection& connection, std::uint64_t offset, std::span<const std::byte> source) {
  while (!source.empty()) {
    std::size_t taken = connection.put(offset, source);
    if (taken == 0) taken = put_once_there_is_room(connection, offset, source);
    if (taken == 0) return false;
    offset += taken;
    source = source.subspan(taken);
  }
  return true;
}

void publish(Connection& connection, std::uint64_t offset, std::uint64_t value, Bell bell) {
  if (connection.map() == nullptr) {
    connection.signal(offset, value, bell);
    return;
  }
  reinterpret_cast<std::atomic<std::uint64_t>*>(connection.map() + offset)->store(value, std::memory_order_release);
  connection.announce(bell);
}

void fill(std::span<std::byte> bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  while (!bytes.empty()) {
    const std::uint64_t value = random();
    const std::size_t part = std::min(bytes.size(), sizeof(value));
    std::memcpy(bytes.data(), &value, part);
    bytes = bytes.subspan(part);
  }
}

bool filled(std::span<const std::byte> bytes, std::uint64_t seed) {
  std::vector<std::byte> expected(bytes.size());
  fill(expected, seed);
  return std::memcmp(bytes.data(), expected.data(), bytes.size()) == 0;
}

void dawdle(std::uint64_t random) {
  if (random % 4 == 0) return;
  if (random % 64 == 1) {
    std::this_thread::sleep_for(std::chrono::microseconds(random / 64 % 60));
    return;
  }
  for (std::uint64_t spins = random / 64 % 400; spins > 0; --spins) arch::pause();
}

CallersPages::CallersPages(std::size_t bytes) {
  void* got = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) throw std::bad_alloc();
  bytes_ = {static_cast<std::byte*>(got), bytes};
}

CallersPages::~CallersPages() { ::munmap(bytes_.data(), bytes_.size()); }

}  // namespace wherry::conformance
