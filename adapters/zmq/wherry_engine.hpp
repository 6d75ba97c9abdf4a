// SPDX-License-Identifier: Apache-2.0
//
// ZMTP over a stream of Wherry. C++20: none of libzmq's own sources includes this.
//
// libzmq's engine polls one descriptor for both directions, and treats "readable" as an error while its input is
// stopped. A stream has an event descriptor for each direction; both are readable on news and always writable. So two
// watches in the same I/O thread poll these. An engine that has more to do than fits one turn asks its watch for
// another. The descriptor that libzmq's engine polls as its own reports only `cancel` and the peer's end.
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

/// Converts socket options to stream options: ZMQ_RCVBUF is the size of the ring that the stream receives into.
wherry::StreamOptions wherry_stream_options(const options_t& options);

/// An address as ZeroMQ programs write it, without a fabric: that is a matter of configuration (WHERRY_FABRIC).
std::string wherry_name(wherry::Address address);

/// A stream and its descriptors, which its engine polls.
struct wherry_link_t {
  /// The stream must not have sent anything yet.
  wherry_link_t(wherry::Stream connected, const options_t& options);

  wherry::Stream stream;
  fd_t fd;  ///< the stream's; monitors and ZMQ_SRCFD report it
  fd_t receive_fd;
  fd_t send_fd;
  wherry::UniqueFd silent;  ///< owns `fd` if the stream has only one descriptor for each direction
};

class wherry_drain_t;

class wherry_engine_t : public zmtp_engine_t {
 public:
  wherry_engine_t(wherry_link_t link, const options_t& options, const endpoint_uri_pair_t& endpoints);
  ~wherry_engine_t() override;

  /// The descriptor that is polled. Monitors and ZMQ_SRCFD report it.
  [[nodiscard]] fd_t descriptor() const { return _s; }

  /// Sets the drain, or null for none. The drain is notified when this object is destroyed. Before plug() any thread
  /// may call this, then only the I/O thread.
  void set_drain(wherry_drain_t* drain) { drain_ = drain; }
  /// Notifies the drain once: when everything that the program has sent so far is written, or as many messages as its
  /// socket may hold. The program may continue to send. Notifies it at once if no message can be under way. This object
  /// may be destroyed when the call returns.
  void notify_when_written();

  void plug(io_thread_t* io_thread, session_base_t* session) override;
  void in_event() override;
  void out_event() override;

 protected:
  /// Has no stream yet. Owns `socket`, which is connected.
  wherry_engine_t(fd_t socket, const options_t& options, const endpoint_uri_pair_t& endpoints);
  /// Continues reading and writing over this stream, at once. The socket is no longer polled. This object may be
  /// destroyed when the call returns.
  void go_on_over(wherry_link_t link, io_thread_t* io_thread);

  int read(void* data, size_t size) override;
  int write(const void* data, size_t size) override;
  bool init_properties(properties_t& properties) override;

 private:
  enum class Filled { some, all, dead };

  /// Marks a call during which this object may be destroyed. Calls nest.
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

  std::optional<wherry_memory_user_t> memory_user_;  ///< set once there is a stream
  wherry::Stream stream_;
  wherry::UniqueFd silent_;
  fd_t stream_fd_ = retired_fd;  ///< `_s`, if that is the stream's
  fd_t receive_fd_ = retired_fd;
  fd_t send_fd_ = retired_fd;
  std::optional<wherry_watch_t> data_;
  std::optional<wherry_watch_t> space_;
  msg_t outgoing_;                        ///< the encoder's until it has copied the message
  const unsigned char* large_ = nullptr;  ///< position of the encoder in a large message
  size_t large_left_ = 0;
  wherry_prefault_t outgoing_pages_{wherry_prefault_t::access_t::reads};
  wherry_heap_prefault_t outgoing_heap_;
  wherry_prefault_t incoming_pages_{wherry_prefault_t::access_t::writes};
  wherry_drain_t* drain_ = nullptr;
  bool ending_ = false;    ///< the drain has asked: the session will end, and not connect again
  bool draining_ = false;  ///< the drain waits
  bool discarded_ = false;
  int taken_in_draining_ = 0;  ///< messages taken while draining
  size_t read_bytes_ = 0;      ///< bytes of the last read
  const void* last_batch_ = nullptr;
  std::chrono::steady_clock::time_point next_turn_;  ///< no yield to the program before this
  std::optional<size_t> body_left_;                  ///< bytes left of a large message that is being received, if known
  call_t* innermost_ = nullptr;                      ///< marked when this object is destroyed
};

}  // namespace zmq
