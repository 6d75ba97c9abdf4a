// SPDX-License-Identifier: Apache-2.0
// The state of a WindowClient: its connection, the lease that it writes into, and the posted files that are not done.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <wherry/framed.hpp>

#include "adapters/root/handover/wire.hpp"
#include "client.hpp"
#include "mapped_lease.hpp"

namespace wherry::root {

class WindowClient::Impl {
 public:
  Impl(std::string_view address, ClientOptions options);

  std::span<std::byte> grow(std::size_t bytes);
  [[nodiscard]] std::span<std::byte> file() const;
  std::uint64_t post(std::string_view name, std::size_t bytes);
  void discard();
  void wait(std::size_t files);
  void finish();
  [[nodiscard]] std::size_t pending() const { return posted_.size(); }
  [[nodiscard]] std::size_t max_file() const { return max_file_; }
  [[nodiscard]] std::uint32_t number() const { return number_; }
  [[nodiscard]] const std::string& output() const { return output_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Posted {
    std::uint64_t sequence = 0;
    std::string name;
    std::size_t bytes = 0;
    std::size_t place = 0;
    std::shared_ptr<MappedLease> lease = {};
    bool here = false;  ///< posted to this server, not only to a previous one
  };

  /// The connection broke. A client that may reconnect handles this error.
  struct Broken : std::exception {
    explicit Broken(int code) : error(code) {}
    int error;
  };

  template <class Step>
  void persist(Step&& step);
  void connect_again(const Broken& broken);
  void resume();
  void greet();
  void enlarge(std::size_t bytes);
  void reserve(std::size_t bytes);
  void begin(std::size_t bytes);
  void pick_up();
  [[nodiscard]] bool is_too_small(std::size_t end) const;
  bool find_place(std::size_t bytes);
  [[nodiscard]] bool may_have_larger() const;
  void need(std::size_t bytes);
  void on_grant(const ControlMessage& grant);
  void hand_over(Posted& file, bool swift, std::uint32_t flags);
  void leave_lease();
  void send(const RootRecord& record, std::string_view text = {});
  void listen();
  void receive();
  void receive_done();
  void receive_pending();
  void on_message(const Received& received);
  void on_welcome(const ControlMessage& message);
  void on_done(std::uint64_t sequence);
  [[noreturn]] void fail(int error, const std::string& why);

  std::string address_;
  ClientOptions options_;
  std::uint8_t id_[16]{};
  FramedStream frames_;
  std::optional<Error> failure_;
  std::size_t max_file_ = 0;
  std::size_t unit_ = 0;
  std::size_t most_files_ = 0;
  std::uint32_t number_ = 0;
  std::string output_;
  std::shared_ptr<MappedLease> lease_;  ///< the lease that new files are written into
  std::optional<std::size_t> begun_;    ///< offset in the lease of the file being written; empty: none has begun
  std::vector<std::byte> carried_;      ///< the file being written, while it moves to a larger lease
  std::size_t needed_ = 0;              ///< bytes asked for and not granted yet
  std::size_t expected_ = 0;            ///< expected bytes of the next file: those of the last
  Clock::time_point began_;             ///< when the file being written began
  std::optional<Clock::time_point> last_post_;
  bool recalled_ = false;     ///< the server wants the lease back
  bool finishing_ = false;    ///< `finished` was sent, the farewell has not arrived
  bool listening_ = false;    ///< the server reports each done file at once
  std::list<Posted> posted_;  ///< files that are not done
  MappedWindows mapped_;
  std::uint64_t sequence_ = 0;
};

/// Runs `step`. If the connection breaks and the client may reconnect, runs it again on a new connection.
template <class Step>
void WindowClient::Impl::persist(Step&& step) {
  if (failure_) throw Error(*failure_);
  for (std::optional<Broken> broken;;) {
    try {
      if (broken) connect_again(*broken);
      return step();
    } catch (const Broken& again) {
      broken = again;
      if (options_.reconnect.count() == 0) fail(again.error, "the server is gone");
    }
  }
}

}  // namespace wherry::root
