// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "channel/channel.hpp"
#include "ship/layout/wire.hpp"

namespace wherry::tools {

/// Reads the collector's answers, in a separate thread, while the shipper sends.
class Results {
 public:
  /// @param refused  called for every refusal, in the reading thread
  Results(Channel& channel, std::function<void(std::string path, std::string error)> refused);
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;
  /// Cancels the channel if the collector has not sent its summary.
  ~Results();

  /// True if the collector has refused `id`, so that more of it need not be sent. May be called from any thread.
  [[nodiscard]] bool refused(std::uint64_t id) const { return last_refused_.load(std::memory_order_relaxed) == id; }
  /// All paths up to this id were stored or refused.
  [[nodiscard]] std::uint64_t settled() const { return settled_.load(std::memory_order_relaxed); }

  /// Waits for the collector's summary or the end of the connection. Returns why answers up to `last_id` are missing;
  /// empty: none are.
  std::string wait(std::uint64_t last_id);

 private:
  void listen();
  void read_all();
  bool take(const layout::ShipResult& result, std::string path, std::string message);
  std::string read_text(std::size_t bytes, std::size_t limit);

  Channel& channel_;
  std::function<void(std::string, std::string)> on_refused_;
  std::atomic<std::uint64_t> last_refused_ = 0;
  std::atomic<std::uint64_t> settled_ = 0;
  bool summary_ = false;  // set by the reading thread; read after its end, as the next
  std::string problem_;
  std::thread thread_;
};

}  // namespace wherry::tools
