// SPDX-License-Identifier: Apache-2.0
// Death between connecting and the first byte.
#include <cerrno>
#include <random>
#include <thread>

#include "tests/fault/fault.hpp"

namespace wherry::fault {
namespace {

class HandshakeDeath : public FaultTest {
 protected:
  static void expect_service(Listener& listener) {
    const Child good([where = listener.local().to_string()] {
      Stream stream = connect(where, {}, kTimeout);
      return stream.send(std::vector<std::byte>(10)).ok();
    });
    // Connectors that died before may still be in the queue in front of it.
    while (true) {
      Stream stream = listener.accept(kTimeout);
      std::vector<std::byte> buffer(10);
      const Result result = stream.receive_all(buffer, kTimeout);
      if (result.ok()) return;
      EXPECT_EQ(result.error, ECONNRESET);
    }
  }
};

TEST_F(HandshakeDeath, OfAConnectorThatWaits) {
  Listener listener = listen(address());
  for (int round = 0; round < 10; ++round) {
    reset_scene();
    Child victim([&] {
      const Connecting connecting = start_connect(listener.local().to_string());
      scene_->ready = true;
      while (true) ::pause();
      return true;
    });
    while (!scene_->ready) std::this_thread::yield();
    victim.kill();
    victim.wait();
    expect_service(listener);
  }
}

TEST_F(HandshakeDeath, OfAConnectorAtAnyMoment) {
  Listener listener = listen(address());
  std::mt19937_64 random(3);
  for (int round = 0; round < 60; ++round) {
    const Child victim([&] {
      while (true) (void)connect(listener.local().to_string(), {.ring_bytes = 4096}, kTimeout);
      return true;
    });
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 5000);
    while (std::chrono::steady_clock::now() < end) {
      if (auto stream = listener.try_accept()) {
        EXPECT_TRUE(stream->send(std::vector<std::byte>(100)).bytes <= 100);
      }
    }
    victim.kill();
  }
  expect_service(listener);
}

TEST_F(HandshakeDeath, OfAListenerWhileConnectorsWait) {
  SharedValue<std::atomic<std::uint32_t>> port;
  Child victim([&] {
    const Listener listener = listen(address());
    *port = *listener.local().port;
    while (true) ::pause();
    return true;
  });
  while (*port == 0) std::this_thread::yield();
  const std::string where = "wherry+shm://0:" + std::to_string(*port);
  std::vector<Connecting> waiting;
  for (int i = 0; i < 20; ++i) waiting.push_back(start_connect(where));
  kill_now(victim);
  for (Connecting& connecting : waiting) {
    ASSERT_TRUE(becomes_readable(connecting.descriptor(), kTimeout));
    try {
      while (!connecting.try_finish()) std::this_thread::yield();
      ADD_FAILURE() << "connected to the dead";
    } catch (const Error& error) {
      EXPECT_EQ(error.code().value(), ECONNREFUSED) << error.what();
    }
  }
  noticed();
  victim.wait();
  Listener next = listen(where);  // The name died with its holder.
  expect_service(next);
}

TEST_F(HandshakeDeath, OfAListenerWhileSomebodyIsBlockedInConnect) {
  for (int round = 0; round < 10; ++round) {
    reset_scene();
    SharedValue<std::atomic<std::uint32_t>> port;
    const Child victim([&] {
      const Listener listener = listen(address());
      *port = *listener.local().port;
      scene_->ready = true;
      while (true) ::pause();
      return true;
    });
    while (*port == 0) std::this_thread::yield();
    const Child killer = killer_of(victim, 3ms);
    try {
      (void)start_connect("wherry+shm://0:" + std::to_string(*port), {}, 0s).finish(kTimeout);
      ADD_FAILURE() << "connected to the dead";
    } catch (const Error& error) {
      EXPECT_EQ(error.code().value(), ECONNREFUSED) << error.what();
    }
    noticed();
  }
}

TEST_F(HandshakeDeath, OfAnAcceptorRightAfterItAccepted) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 20; ++round) {
    reset_scene();
    SharedValue<std::atomic<std::uint32_t>> port;
    const Child victim([&] {
      Listener listener = listen(address());
      *port = *listener.local().port;
      scene_->ready = true;
      while (true) (void)listener.accept(kTimeout);
      return true;
    });
    while (*port == 0) std::this_thread::yield();
    const Child killer = killer_of(victim, std::chrono::microseconds(random() % 2000));
    const auto end = std::chrono::steady_clock::now() + kTimeout;
    int last = 0;
    while (last == 0 && std::chrono::steady_clock::now() < end) {
      try {
        const std::string where = "wherry+shm://0:" + std::to_string(*port);
        Stream stream = start_connect(where, {.ring_bytes = 4096}, 0s).finish(kTimeout);
        std::vector<std::byte> buffer(1);
        const Result result = stream.receive(buffer, kTimeout);
        EXPECT_TRUE(result.ended() || result.error == ECONNRESET) << result.error;
      } catch (const Error& error) {
        last = error.code().value();
      }
    }
    EXPECT_EQ(last, ECONNREFUSED);
  }
}

}  // namespace
}  // namespace wherry::fault
