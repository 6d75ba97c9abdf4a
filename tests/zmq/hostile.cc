// SPDX-License-Identifier: Apache-2.0
//
// A peer of a ZeroMQ socket that keeps no rule, for tests between processes.
//
//   hostile HOW ENDPOINT    connects, takes part as a PULL socket would until messages come, and then does as HOW says:
//
//   head      claims to have read what was never written      finished  ends in the middle of what it has written
//   tail      claims to have written more than fits           size      announces a message of 2^62 bytes
//   command   says nothing that a handshake knows, instead of taking part
//
// Ends well when the socket has dropped the connection.
#include <poll.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <thread>

#include "ring/ring.hpp"
#include "stream/handshake.hpp"

namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using wherry::fabric::Bell;
using wherry::layout::StreamPage;

constexpr std::size_t kCapacity = std::size_t{64} << 10;

/// ZMTP 3.0, no security.
std::string greeting() {
  return "\xff"s + std::string(8, '\0') + "\x7f\x03\x00"s + "NULL"s + std::string(16, '\0') + std::string(32, '\0');
}

std::string command(const std::string& body) { return "\x04"s + static_cast<char>(body.size()) + body; }

std::string ready() { return command("\x05READY\x0bSocket-Type\0\0\0\x04PULL\x08Identity\0\0\0\0"s); }

class Hostile {
 public:
  explicit Hostile(const std::string& endpoint) {
    const auto address = wherry::Address::parse(endpoint);
    // Until the port is listened on, as a socket of ZeroMQ's would.
    while (!try_connect(address)) std::this_thread::sleep_for(1ms);
    own_ = reinterpret_cast<StreamPage*>(connection_->segment().data());
    victims_ = reinterpret_cast<StreamPage*>(connection_->map());
    wherry::layout::StreamGreeting greeting{};
    std::memcpy(&greeting, connection_->peer_greeting().data(), sizeof greeting);
    ring_ = {connection_->map() + wherry::layout::kStreamPageBytes, greeting.capacity};
    producer_ = wherry::ring::Producer(ring_, &own_->head, &victims_->tail);
  }

  void say(const std::string& text) {
    producer_.commit(producer_.copy_in(std::as_bytes(std::span(text))));
    connection_->announce(Bell::data);
  }

  void wait_for_messages() {
    while (own_->tail < kCapacity / 2) std::this_thread::sleep_for(1ms);
  }

  void wait_until_dropped() {
    while (!connection_->peer_gone()) std::this_thread::sleep_for(1ms);
  }

  void misbehave(std::string_view how) {
    if (how == "head") {
      victims_->head = std::uint64_t{1} << 40;
      connection_->announce(Bell::space);
    } else if (how == "tail") {
      victims_->tail = producer_.tail() + ring_.capacity + 1;
      connection_->announce(Bell::data);
    } else if (how == "finished") {
      victims_->finished = 1 + producer_.tail() / 2;
      connection_->announce(Bell::data);
    } else if (how == "size") {
      say("\x02\x40\0\0\0\0\0\0\0"s + std::string(1000, 'x'));
    }
  }

 private:
  bool try_connect(const wherry::Address& address) {
    try {
      const auto connecting =
          wherry::fabric::find(address).connect(address, wherry::stream::offer_of({.own = kCapacity}));
      while ((connection_ = connecting->try_finish()) == nullptr) {
        pollfd polled{connecting->descriptor(), POLLIN, 0};
        (void)::poll(&polled, 1, -1);
      }
      return true;
    } catch (const wherry::Error& error) {
      if (error.code().value() != ECONNREFUSED) throw;
      return false;
    }
  }

  std::unique_ptr<wherry::fabric::Connection> connection_;
  StreamPage* own_ = nullptr;
  StreamPage* victims_ = nullptr;
  wherry::ring::View ring_;
  wherry::ring::Producer producer_;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 3) throw std::runtime_error("usage: hostile HOW ENDPOINT");
    const std::string_view how = argv[1];
    Hostile hostile(argv[2]);
    hostile.say(greeting());
    if (how == "command") {
      hostile.say(command("\x05WRONG"s));
    } else {
      hostile.say(ready());
      hostile.wait_for_messages();
      hostile.misbehave(how);
    }
    hostile.wait_until_dropped();
    std::puts("dropped");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hostile: %s\n", error.what());
    return 1;
  }
}
