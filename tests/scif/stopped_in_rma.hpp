// SPDX-License-Identifier: Apache-2.0
// A peer that stands still in the middle of an RMA call, and calls that wait for it.
#pragma once

#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <memory>

#include "tests/scif/spaces.hpp"
#include "tests/scif/waiting.hpp"

namespace wherry::scif_test {

/// A child that writes to this process's window at kNear again and again, by large calls.
class BusyPeer {
 public:
  static constexpr std::size_t kBytes = std::size_t{64} << 20;

  BusyPeer() : child_([this] { return write_for_ever(); }), epd_(listening_.accept()) {
    EXPECT_EQ(scif_register(epd_, window_, kBytes, kNear, kRw, SCIF_MAP_FIXED), kNear);
    EXPECT_EQ(send_text(epd_, "go"), 2);
  }

  [[nodiscard]] Epd& epd() { return epd_; }
  [[nodiscard]] const char* window() const { return window_; }
  void kill() const { child_.kill(); }
  void resume() const { ::kill(child_.pid(), SIGCONT); }

  /// Stops it in a call such that `call` waits.
  template <class Call>
  std::unique_ptr<Waiting> stop_so_that_this_waits(Call call) {
    while (true) {
      stop();
      auto waiting = std::make_unique<Waiting>(call);
      if (waiting->waits()) return waiting;
      waiting->join();
      EXPECT_EQ(waiting->result, 0) << std::strerror(waiting->error);
      resume();
    }
  }

 private:
  bool write_for_ever() const {
    const Epd epd;
    scif_portID to = listening_.port;
    if (scif_connect(epd, &to) <= 0 || receive_text(epd, 2) != "go") return false;
    std::vector<char> bytes(kBytes, 'x');
    while (true) {
      *in_call_ = true;
      if (scif_vwriteto(epd, bytes.data(), kBytes, kNear, 0) != 0) return false;
      *in_call_ = false;
    }
  }

  void stop() const {
    while (true) {
      ::kill(child_.pid(), SIGSTOP);
      int status = 0;
      EXPECT_EQ(::waitpid(child_.pid(), &status, WUNTRACED), child_.pid());
      if (!WIFSTOPPED(status) || *in_call_) return;
      resume();
      ::usleep(1000);
    }
  }

  const Listening listening_;
  const SharedValue<std::atomic<bool>> in_call_;
  Pages window_{kBytes / kPage};
  Child child_;
  Epd epd_;
};

}  // namespace wherry::scif_test
