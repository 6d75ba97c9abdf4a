// SPDX-License-Identifier: Apache-2.0
// The implementation of wherry::Poller. A stream in it is either
//
//  - idle: its bell is armed, and nothing was there to receive after that. The peer will ring. All bells are in one
//    epoll set, so the kernel's ready list names the streams. Their words are not read.
//  - active: it had bytes recently. Its words are polled without a system call, and its peer need not ring. It goes to
//    the end of the list after each look, so that all take turns.
//
// No wake-up is lost if each use of an idle stream's bell makes the stream active: in the poller when the bell rang,
// and in a blocking call on the stream that slept (Watcher::bell_used). The poller sleeps only while no stream is
// active.
#pragma once

#include <array>
#include <atomic>
#include <list>
#include <map>
#include <span>

#include <wherry/poller.hpp>

#include "base/fork_generation.hpp"
#include "base/unique_fd.hpp"
#include "fabric/event_bell.hpp"
#include "stream/receive_coalescing.hpp"
#include "stream/receiver.hpp"
#include "stream/waiter.hpp"

namespace wherry {

class Poller::Impl {
 public:
  Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl();

  void add(Stream::Impl& stream, Token token);
  void remove(const Stream::Impl& stream);
  void add(int descriptor, Token token);
  void remove(int descriptor);
  std::size_t wait(std::span<Token> ready, const Timeout& timeout);
  void interrupt();
  int descriptor();

 private:
  /// Identifies the event source of an entry of the epoll set.
  struct Source {
    enum class Kind : std::uint8_t { interruption, descriptor, stream };
    Kind kind;
    int descriptor;
    Token token;
  };

  /// A stream in the poller.
  struct Polled final : Source, stream::Watcher {
    Polled(Impl& in, stream::Receiver& of, int bell, Token name)
        : Source{Kind::stream, bell, name}, poller(in), receiver(of) {}
    void bell_used() noexcept override { poller.activate(*this); }
    void leaving() noexcept override { poller.forget(*this); }

    Impl& poller;
    stream::Receiver& receiver;
    std::list<Polled>::iterator place;
    unsigned idle_looks = 0;  ///< looks that found nothing since the last one that found bytes
    bool active = true;
  };

  /// The events that a wait has found so far.
  struct Found {
    std::span<Token> into;
    std::size_t count = 0;
    std::size_t bytes = 0;  ///< bytes waiting in the streams found

    [[nodiscard]] bool any() const { return count != 0; }
    [[nodiscard]] bool full() const { return count == into.size(); }
    void report(Token token, std::size_t waiting) {
      into[count++] = token;
      bytes += waiting;
    }
  };

  void enter(Source& source);
  void leave(const Source& source);
  void forget(Polled& polled);
  void activate(Polled& polled);
  bool linger(Found& found, fabric::Deadline deadline);
  bool spin(Found& found, fabric::Deadline deadline);
  bool arm_all();
  void look(Found& found);
  bool any_is_ready() const;
  bool progress_all() const;
  void end_progress() const;
  bool asking_is_due();
  void ask(Found& found);
  void sleep(Found& found, fabric::Deadline deadline);
  void take_events(Found& found, int timeout_ms);
  void poll_without_epoll(Found& found, bool after_a_tick);
  void silence_descriptor();
  void signal_descriptor();

  const Origin origin_;
  UniqueFd epoll_;
  fabric::EventBell bell_;  ///< for interruptions, and to make the descriptor readable while a stream is active
  Source interruption_;
  std::size_t unmapped_ = 0;  ///< streams on put fabrics
  std::list<Polled> active_;
  std::list<Polled> idle_;
  std::map<int, Source> descriptors_;
  stream::SpinBudget spin_;
  stream::ReceiveCoalescing coalescing_;
  unsigned reports_ = 0;  ///< events reported since the clock was last read
  stream::SteadyClock::time_point next_ask_{};
  bool nested_ = false;     ///< the program uses the descriptor
  bool signalled_ = false;  ///< the bell rings to make the descriptor readable
  std::atomic<bool> interrupted_{false};
};

}  // namespace wherry
