// SPDX-License-Identifier: Apache-2.0
// Ports are Wherry's ports: streams and endpoints may come to each other's by mistake. And connectors that say nothing.
#include <sys/socket.h>
#include <sys/un.h>

#include <wherry/wherry.hpp>

#include "base/unique_fd.hpp"
#include "tests/scif/common.hpp"

namespace wherry::scif_test {
namespace {

class ScifStranger : public Scif {};

/// What a program reads when its stream comes to a port of SCIF's.
bool stream_is_refused(const scif_portID& port) {
  try {
    connect("wherry://0:" + std::to_string(port.port));
  } catch (const Error& error) {
    return error.code().value() == ECONNREFUSED && !error.advice().empty();
  }
  return false;
}

TEST_F(ScifStranger, AStreamIsRefusedByAnEndpointWhichGoesOnListening) {
  const Listening listening;
  Child child([&] {
    if (!stream_is_refused(listening.port)) return false;
    const Epd epd;
    scif_portID to = listening.port;
    return scif_connect(epd, &to) > 0 && send_text(epd, "hello") == 5 && receive_text(epd, 1) == "x";
  });
  const Epd epd(listening.accept());
  EXPECT_EQ(receive_text(epd, 5), "hello");
  EXPECT_EQ(send_text(epd, "x"), 1);
  EXPECT_EQ(child.wait(), 0);
}

/// How long one looks for requests where only a stream waits.
std::int64_t time_to_refuse_a_stream() {
  const Listening listening;
  Connecting stranger = start_connect("wherry://0:" + std::to_string(listening.port.port));
  scif_portID peer{};
  scif_epd_t made = -1;
  const std::int64_t before = steady_ns();
  EXPECT_FAILS(EAGAIN, scif_accept(listening.epd, &peer, &made, 0));
  const std::int64_t took = steady_ns() - before;
  EXPECT_EQ(events(listening.epd, SCIF_POLLIN), 0);
  EXPECT_THROW(stranger.try_finish(), Error);
  return took;
}

TEST_F(ScifStranger, AStreamIsNoRequestForWhoDoesNotWait) {
  // A connector that was stopped halfway is waited for so long: each time, were a stream taken for one.
  while (time_to_refuse_a_stream() > 900'000'000) continue;
}

TEST_F(ScifStranger, AnEndpointIsRefusedByAStreamsListenerWhichGoesOn) {
  Listener listener = listen("wherry://*:*");
  const std::string address = listener.local().to_string();
  Child child([&] {
    scif_portID to{.node = 0, .port = *listener.local().port};
    const Epd epd;
    const int port = scif_bind(epd, 0);
    if (scif_connect(epd, &to) != -1 || errno != ECONNREFUSED) return false;
    if (scif_bind(epd, 0) != -1 || errno != EINVAL || port <= 0) return false;  // it is bound, as it was
    Stream stream = connect(address);
    return stream.send(std::as_bytes(std::span("hello", 5))).ok();
  });
  Stream stream = listener.accept();
  std::array<std::byte, 5> heard{};
  ASSERT_TRUE(stream.receive_all(heard).ok());
  EXPECT_EQ(std::memcmp(heard.data(), "hello", 5), 0);
  EXPECT_EQ(child.wait(), 0);
}

/// Connects and says nothing, as a program does that was stopped.
UniqueFd silent_connector(const Listening& listening) {
  sockaddr_un name{};
  socklen_t length = sizeof name;
  EXPECT_EQ(::getsockname(listening.epd, reinterpret_cast<sockaddr*>(&name), &length), 0);
  UniqueFd silent(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(silent.get(), reinterpret_cast<const sockaddr*>(&name), length), 0) << std::strerror(errno);
  return silent;
}

std::int64_t time_to_accept_behind_silent_connectors() {
  const Listening listening;
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 3; ++i) silent.push_back(silent_connector(listening));
  const Epd epd;
  set_nonblocking(epd, true);
  scif_portID to = listening.port;
  EXPECT_FAILS(EINPROGRESS, scif_connect(epd, &to));
  scif_portID peer{};
  scif_epd_t made = -1;
  const std::int64_t before = steady_ns();
  EXPECT_EQ(scif_accept(listening.epd, &peer, &made, 0), 0) << std::strerror(errno);
  const Epd accepted(made);
  EXPECT_GT(scif_connect(epd, &to), 0);
  return steady_ns() - before;
}

TEST_F(ScifStranger, WhoAreSilentAreWaitedForTogetherAsLongAsOne) {
  while (time_to_accept_behind_silent_connectors() > 2'900'000'000) continue;  // each time, were it a second for each
}

TEST_F(ScifStranger, WhoIsSilentIsNoLongerWaitedForAfterASignal) {
  Child acceptor([&] {
    const Listening listening;
    const UniqueFd silent = silent_connector(listening);
    scif_portID peer{};
    scif_epd_t made = -1;
    interrupt_calls();
    return scif_accept(listening.epd, &peer, &made, 0) == -1 && errno == EINTR;
  });
  EXPECT_EQ(acceptor.wait(), 0);
}

}  // namespace
}  // namespace wherry::scif_test
