// SPDX-License-Identifier: Apache-2.0
//
// ZMTP over a stream of Wherry's. C++20: none of libzmq's own sources includes this.
//
// libzmq's engine polls one descriptor for both directions, and takes "readable" for an error while its input is
// stopped. A stream has an event descriptor for each direction, both readable when there is news and both always
// writable. So two watches in the same I/O thread look at those, and an engine that has more to do than one turn takes
// asks its watch for another. What libzmq's engine polls as its own tells only of `cancel` and of the peer's end.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <wherry/stream.hpp>

#include <io_object.hpp>
#include <options.hpp>
#include <zmtp_engine.hpp>
#include "base/unique_fd.hpp"
#include "wherry_memory.hpp"
#include "wherry_message.hpp"
#include "wherry_prefault.hpp"
#include "wherry_watch.hpp"

namespace zmq {

/// What the options of a socket mean for the stream: ZMQ_RCVBUF is the size of the ring it receives into.
wherry::StreamOptions wherry_stream_options(const options_t& options);

/// An address as programs of ZeroMQ's write it. Which fabric reaches it is a matter of configuration (WHERRY_FABRIC).
std::string wherry_name(wherry::Address address);

/// A stream and its descriptors, which its engine polls.
struct wherry_link_t {
  /// Of a stream over which nothing was sent yet.
  wherry_link_t(wherry::Stream connected, const options_t& options);

  wherry::Stream stream;
  fd_t fd;  ///< of the stream: what monitors and ZMQ_SRCFD tell of
  fd_t receive_fd;
  fd_t send_fd;
  wherry::UniqueFd silent;  ///< `fd`, where the stream has one descriptor for each direction only
};

class wherry_drain_t;

class wherry_engine_t : public zmtp_engine_t {
 public:
  wherry_engine_t(wherry_link_t link, const options_t& options, const endpoint_uri_pair_t& endpoints);
  ~wherry_engine_t() override;

  /// The one that is polled: what monitors and ZMQ_SRCFD tell of.
  [[nodiscard]] fd_t descriptor() const { return _s; }

  /// Null: none. It is told when this object goes away. Until this is plugged in by any thread, then by the I/O thread.
  void set_drain(wherry_drain_t* drain) { drain_ = drain; }
  /// Tells the drain, once, when all that the program has sent until now is written, or as many messages as its socket
  /// may hold: it may go on to send. At once if no message can be under way. This object may be gone when the call
  /// returns.
  void tell_when_written();

  void plug(io_thread_t* io_thread, session_base_t* session) override;
  void in_event() override;
  void out_event() override;

 protected:
  /// Without a stream as yet. Owns `socket`, which is connected.
  wherry_engine_t(fd_t socket, const options_t& options, const endpoint_uri_pair_t& endpoints);
  /// Reading and writing go on over this stream, at once; the socket is polled no more. This object may be gone when
  /// the call returns.
  void go_on_over(wherry_link_t link, io_thread_t* io_thread);

  int read(void* data, size_t size) override;
  int write(const void* data, size_t size) override;
  bool init_properties(properties_t& properties) override;

 private:
  enum class Filled { some, all, dead };

  /// A call during which this object may go away. They nest.
  struct call_t {
    explicit call_t(wherry_engine_t& engine) : innermost(engine.innermost_), outer(innermost) { innermost = this; }
    ~call_t() {
      if (!gone) innermost = outer;
    }
    call_t(const call_t&) = delete;
    call_t& operator=(const call_t&) = delete;

    call_t*& innermost;
    call_t* const outer;
    bool gone = false;
  };

  void let_program_catch_up(const void* batch);
  wherry::Result read_aligned(std::span<std::byte> buffer);
  void set_stream(wherry_link_t link);
  void on_receivable();
  void on_sendable();
  void watch_stream(io_thread_t* io_thread);
  bool may_go_on_sending(const wherry::Result& result);
  void send_some(size_t budget);
  void count_taken_message();
  void all_written();
  void discard_messages();
  Filled encode_into(std::span<std::byte> space, size_t& filled);
  [[nodiscard]] bool is_established() const;

  std::optional<wherry_memory_user_t> memory_user_;  ///< from when there is a stream
  wherry::Stream stream_;
  wherry::UniqueFd silent_;
  fd_t stream_fd_ = retired_fd;  ///< `_s`, where that is the stream's
  fd_t receive_fd_ = retired_fd;
  fd_t send_fd_ = retired_fd;
  std::optional<wherry_watch_t> data_;
  std::optional<wherry_watch_t> space_;
  msg_t outgoing_;                        ///< handed to the encoder until that has copied it
  const unsigned char* large_ = nullptr;  ///< where the encoder stands in a large message
  size_t large_left_ = 0;
  wherry_prefault_t outgoing_pages_{wherry_prefault_t::access_t::reads};
  wherry_heap_prefault_t outgoing_heap_;
  wherry_prefault_t incoming_pages_{wherry_prefault_t::access_t::writes};
  wherry_drain_t* drain_ = nullptr;
  bool ending_ = false;    ///< the drain has asked: the session will end, and not connect again
  bool draining_ = false;  ///< the drain waits
  bool discarded_ = false;
  int taken_in_draining_ = 0;  ///< messages
  size_t read_bytes_ = 0;      ///< by the last read
  const void* last_batch_ = nullptr;
  std::chrono::steady_clock::time_point next_turn_;  ///< before this the program is not let catch up
  std::optional<size_t> body_left_;                  ///< of a large message that is being received, if that is known
  call_t* innermost_ = nullptr;                      ///< told when this object goes away
};

}  // namespace zmq
