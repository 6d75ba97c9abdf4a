// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "base/unique_fd.hpp"
#include "channel/channel.hpp"
#include "collect/destination.hpp"
#include "collect/report.hpp"
#include "common/progress.hpp"

namespace wherry::tools {

struct CollectOptions {
  std::string listen = "wherry://*:2000";
  std::string into;
  std::uint64_t expect = 0;     ///< end after this many shippers; 0: end on a signal
  std::uint64_t at_once = 512;  ///< shippers served at the same time; further ones wait
  bool no_sync = false;         ///< files get their names before they have reached the disk
  bool json = false;
  bool quiet = false;
};

/// Accepts shippers and serves each in its own thread, until it has served the expected number, or receives SIGINT or
/// SIGTERM.
class Collector {
 public:
  explicit Collector(CollectOptions options);

  CollectReport run();

 private:
  struct Running {
    std::unique_ptr<Channel> channel;
    std::thread thread;
    ShipperReport report;
    std::atomic<bool> done = false;
  };

  [[nodiscard]] bool wants_more() const;
  [[nodiscard]] bool finished() const;
  bool wait();
  void accept_waiting();
  void start(std::unique_ptr<Channel> channel);
  void reap();
  void log(const std::string& text);
  void interrupt();
  [[nodiscard]] std::string progress_text() const;

  CollectOptions options_;
  UniqueFd signals_;
  UniqueFd session_done_;
  Destination destination_;
  std::unique_ptr<ChannelListener> listener_;
  LiveTotals totals_;
  std::list<Running> running_;
  CollectReport report_;
  std::atomic<std::uint64_t> came_ = 0;
  std::atomic<std::uint64_t> gone_ = 0;
  std::atomic<std::uint64_t> first_came_ns_ = 0;
  std::uint64_t last_gone_ns_ = 0;
  std::string last_accept_error_;
  std::unique_ptr<Progress> progress_;
};

}  // namespace wherry::tools
