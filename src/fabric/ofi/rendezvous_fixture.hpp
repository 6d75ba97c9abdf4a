// SPDX-License-Identifier: Apache-2.0
// For tests: a separate job, and both sides of a rendezvous driven by one thread.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <wherry/error.hpp>

#include "fabric/ofi/meeting_socket.hpp"
#include "fabric/ofi/rendezvous.hpp"

namespace wherry::fabric::ofi {

/// Returns settings with a job that no other running test uses.
inline Settings test_settings() {
  static int count = 0;
  Settings settings;
  // The kernel gives others to connections of its own choice. Most other test programs have others, too.
  constexpr int kFirst = 10000, kEach = 100, kRanges = 100;
  const auto first = static_cast<std::uint16_t>(kFirst + ::getpid() % kRanges * kEach);
  settings.ports = {first, static_cast<std::uint16_t>(first + kEach - 1)};
  settings.key.fill(std::byte{1});
  settings.job = "rendezvous-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
  return settings;
}

inline Introduction test_introduction(const std::string& text) {
  Introduction own{.node = 3, .port = 0, .segment_bytes = 4096, .greeting = {}, .data = {}};
  std::memcpy(own.greeting.data(), text.data(), text.size());
  own.data.resize(text.size());
  std::memcpy(own.data.data(), text.data(), text.size());
  return own;
}

inline Deadline seconds_from_now(int seconds) { return Timer::Clock::now() + std::chrono::seconds(seconds); }

/// Drives each side when its descriptor is readable, and only then, until `is_done` returns true.
inline void drive(RendezvousListener* listener, RendezvousConnector* connector, std::optional<Meeting>* meeting,
                  const std::function<bool()>& is_done) {
  while (!is_done()) {
    std::array<pollfd, 2> polled{};
    polled[0] = {.fd = listener != nullptr ? listener->descriptor() : -1, .events = POLLIN, .revents = 0};
    polled[1] = {.fd = connector != nullptr ? connector->descriptor() : -1, .events = POLLIN, .revents = 0};
    ASSERT_GT(::poll(polled.data(), polled.size(), -1), 0);
    if (polled[0].revents != 0) listener->advance();
    if (polled[1].revents != 0) {
      if (auto made = connector->advance()) *meeting = std::move(made);
    }
  }
}

struct BothEnds {
  std::optional<Meeting> listener;
  std::optional<Meeting> connector;
};

/// Drives both until they have met.
inline BothEnds meet(RendezvousListener& listener, RendezvousConnector& connector) {
  BothEnds ends;
  drive(&listener, &connector, &ends.connector, [&] { return listener.visitor() != nullptr; });
  ends.listener = listener.accept(test_introduction("listener"));
  drive(&listener, &connector, &ends.connector, [&] { return ends.connector.has_value(); });
  return ends;
}

/// Returns the error that the connector throws. Drives the listener meanwhile, if there is one.
inline Error failure_of(RendezvousListener* listener, RendezvousConnector& connector) {
  try {
    std::optional<Meeting> meeting;
    drive(listener, &connector, &meeting, [&] { return meeting.has_value(); });
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "they have met";
  return {0, "", "", ""};
}

}  // namespace wherry::fabric::ofi
