// SPDX-License-Identifier: Apache-2.0
// What the SCIF tests share. They use the library as a program would: through scif.h.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <scif.h>

#include "base/child_process.hpp"

namespace wherry::scif_test {

/// Each test has its own ports: a job of its own.
class Scif : public ::testing::Test {
 protected:
  Scif() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    const std::string job = "scif-" + std::to_string(::getpid()) + "-" + std::to_string(test->line());
    ::setenv("WHERRY_JOB", job.c_str(), 1);
    ::unsetenv("WHERRY_NODE");
  }
};

/// Fails with that error.
#define EXPECT_FAILS(expected, call)                                    \
  do {                                                                  \
    errno = 0;                                                          \
    EXPECT_EQ(call, -1);                                                \
    EXPECT_EQ(errno, expected) << std::strerror(errno) << " in " #call; \
  } while (false)

/// An endpoint that is closed at the end of the scope.
class Epd {
 public:
  Epd() : epd_(scif_open()) { EXPECT_GE(epd_, 0); }
  explicit Epd(scif_epd_t epd) : epd_(epd) {}
  Epd(Epd&& other) noexcept : epd_(std::exchange(other.epd_, -1)) {}
  Epd& operator=(Epd&& other) noexcept {
    std::swap(epd_, other.epd_);
    return *this;
  }
  ~Epd() { close(); }
  void close() {
    if (epd_ >= 0) {
      EXPECT_EQ(scif_close(std::exchange(epd_, -1)), 0);
    }
  }
  // NOLINTNEXTLINE(google-explicit-constructor): a test passes it where SCIF wants the number
  operator scif_epd_t() const { return epd_; }
  [[nodiscard]] int release() { return std::exchange(epd_, -1); }

 private:
  scif_epd_t epd_;
};

inline void set_nonblocking(int fd, bool on) {
  const int flags = ::fcntl(fd, F_GETFL);
  ASSERT_EQ(::fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK), 0);
}

/// A listener at a free port of this node.
struct Listening {
  explicit Listening(int backlog = 16) {
    port = {.node = 0, .port = static_cast<std::uint16_t>(scif_bind(epd, 0))};
    EXPECT_EQ(scif_listen(epd, backlog), 0);
  }
  scif_epd_t accept(scif_portID* peer = nullptr) const {
    scif_portID whom{};
    scif_epd_t made = -1;
    EXPECT_EQ(scif_accept(epd, &whom, &made, SCIF_ACCEPT_SYNC), 0) << std::strerror(errno);
    if (peer != nullptr) *peer = whom;
    return made;
  }
  Epd epd;
  scif_portID port{};
};

/// Two connected endpoints of this process.
struct Pair {
  Pair() {
    Listening listening;
    set_nonblocking(connector, true);
    EXPECT_FAILS(EINPROGRESS, scif_connect(connector, &listening.port));
    acceptor = Epd(listening.accept());
    EXPECT_GT(scif_connect(connector, &listening.port), 0) << std::strerror(errno);
    set_nonblocking(connector, false);
  }
  Epd connector;
  Epd acceptor{-1};
};

/// What poll(2) itself says at this moment.
inline short kernel_events(int fd, short asked, int timeout_ms = 0) {
  pollfd polled{fd, asked, 0};
  return ::poll(&polled, 1, timeout_ms) == 1 ? polled.revents : short{0};
}

inline short events(scif_epd_t epd, short asked, long timeout_ms = 0) {
  scif_pollepd polled{epd, asked, 0};
  return scif_poll(&polled, 1, timeout_ms) == 1 ? polled.revents : short{0};
}

inline int send_text(scif_epd_t epd, const std::string& text, int flags = SCIF_SEND_BLOCK) {
  return scif_send(epd, const_cast<char*>(text.data()), static_cast<int>(text.size()), flags);
}

inline std::string receive_text(scif_epd_t epd, std::size_t bytes, int flags = SCIF_RECV_BLOCK) {
  std::string text(bytes, '\0');
  const int n = scif_recv(epd, text.data(), static_cast<int>(bytes), flags);
  text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return text;
}

/// Lets signals that do nothing else interrupt this process's calls: again and again, as a call may begin late.
inline void interrupt_calls() {
  struct sigaction action{};
  action.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGALRM, &action, nullptr), 0);
  constexpr timeval kPeriod{.tv_sec = 0, .tv_usec = 100'000};
  const itimerval timer{.it_interval = kPeriod, .it_value = kPeriod};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &timer, nullptr), 0);
}

/// Waits for what the kernel does on its own after a process died or a descriptor was closed.
inline void await_hang_up(int fd) { EXPECT_NE(kernel_events(fd, 0, -1) & POLLHUP, 0); }

}  // namespace wherry::scif_test
