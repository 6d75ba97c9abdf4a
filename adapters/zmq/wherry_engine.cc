// SPDX-License-Identifier: Apache-2.0
#include <precompiled.hpp>  // before anything else of libzmq's

#include "wherry_engine.hpp"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <utility>

#include <wherry/error.hpp>

#include <err.hpp>
#include <i_encoder.hpp>
#include <mechanism.hpp>
#include "wherry_sessions.hpp"

namespace zmq {
namespace {

/// libzmq's 8 KiB would split one look at a ring, which is cheap, into many turns of the I/O thread: 4 KiB messages go
/// twice as fast as with 32 KiB. Larger messages than this are read in place; smaller ones stay in their batch.
constexpr int kBatch = 512 << 10;

/// A piece is published as soon as it is written: the receiver copies it out of the cache while the next is copied in.
constexpr std::size_t kPiece = std::size_t{128} << 10;

/// The program frees a batch in a few microseconds. A longer turn was another thread's, which may last milliseconds.
constexpr std::chrono::microseconds kLongTurn{200};
constexpr int kRestAfterLongTurn = 64;

/// Bytes that one event moves before the other engines of the I/O thread have their turn.
constexpr std::size_t kMostPerEvent = std::size_t{1} << 20;

/// Most bytes of one read or write, whose result is an int.
constexpr std::size_t kMostPerCall = std::size_t{1} << 30;

int descriptor_made(int fd) {
  if (fd < 0) throw wherry::Error(errno, "connect a ZeroMQ socket", "", "raise the limit of open files (ulimit -n)");
  return fd;
}

/// A socket without a peer. The constructor of the base class asks for the peer's address, and aborts if the descriptor
/// is no socket.
fd_t any_socket() { return descriptor_made(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

/// Makes the C library keep freed memory. It returns memory to the kernel as soon as 128 KiB lie together, and messages
/// then cost a fault for each page. Once it has seen a larger block freed it keeps twice as much: here 8 MiB. A limit
/// that the program has set (mallopt, MALLOC_TRIM_THRESHOLD_) stays in force.
void keep_freed_memory() {
  static const bool done = [] {
    void* volatile block = std::malloc(std::size_t{4} << 20);
    std::free(block);
    return true;
  }();
  (void)done;
}

/// Header of a message of more than 255 bytes: flags, and eight bytes of size.
constexpr std::size_t kLargeHeader = 9;
constexpr auto kLargeFlag = std::byte{2};

/// Returns the size of the message that begins here, if it is to be read in place. A wrong guess, with a peer that
/// speaks an old version of the protocol, only splits the reads differently.
std::optional<std::size_t> large_body(std::span<const std::byte> head) {
  if (head.size() < kLargeHeader || (head[0] & kLargeFlag) == std::byte{0}) return std::nullopt;
  std::size_t size = 0;
  for (const std::byte byte : head.subspan(1)) size = size << 8 | std::to_integer<std::size_t>(byte);
  if (size <= static_cast<std::size_t>(kBatch)) return std::nullopt;
  return size;
}

}  // namespace

wherry::StreamOptions wherry_stream_options(const options_t& options) {
  return {.ring_bytes = static_cast<std::size_t>(std::max(options.rcvbuf, 0))};
}

std::string wherry_name(wherry::Address address) {
  address.fabric.clear();
  return address.to_string();
}

wherry_link_t::wherry_link_t(wherry::Stream connected, const options_t& options)
    : stream(std::move(connected)),
      fd(stream.receive_descriptor()),
      receive_fd(stream.receive_event_descriptor()),
      send_fd(stream.send_event_descriptor()) {
  // libzmq polls no descriptor twice, and here one descriptor reports everything.
  if (receive_fd == fd) {
    silent.reset(descriptor_made(::epoll_create1(EPOLL_CLOEXEC)));
    fd = silent.get();
  }
  if (options.sndbuf > 0) (void)stream.limit_unread(static_cast<std::size_t>(options.sndbuf));
}

wherry_engine_t::wherry_engine_t(fd_t socket, const options_t& options, const endpoint_uri_pair_t& endpoints)
    : zmtp_engine_t(socket, options, endpoints) {
  keep_freed_memory();
  const int rc = outgoing_.init();
  errno_assert(rc == 0);
}

wherry_engine_t::wherry_engine_t(wherry_link_t link, const options_t& options, const endpoint_uri_pair_t& endpoints)
    : wherry_engine_t(any_socket(), options, endpoints) {
  set_stream(std::move(link));
  const int rc = ::close(std::exchange(_s, stream_fd_));
  errno_assert(rc == 0);
  // ZAP handlers and users of ZMQ_MSG_PROPERTY_PEER_ADDRESS compare this with lists of addresses.
  _peer_address = "127.0.0.1";
}

wherry_engine_t::~wherry_engine_t() {
  for (call_t* call = innermost_; call != nullptr; call = call->outer) call->gone = true;
  if (drain_ != nullptr) drain_->engine_gone();
  if (_s == stream_fd_) _s = retired_fd;  // the base class closes only its own
  const int rc = outgoing_.close();
  errno_assert(rc == 0);
}

/// To be called before the base class makes an encoder and a decoder. Over a socket the batch sizes stay as the program
/// has set them: libzmq may lose what the kernel still holds if the peer closes while a slow program's batch is not
/// done.
void wherry_engine_t::set_stream(wherry_link_t link) {
  _options.in_batch_size = std::max(_options.in_batch_size, kBatch);
  _options.out_batch_size = std::max(_options.out_batch_size, kBatch);
  memory_user_.emplace();
  stream_ = std::move(link.stream);
  silent_ = std::move(link.silent);
  stream_fd_ = link.fd;
  receive_fd_ = link.receive_fd;
  send_fd_ = link.send_fd;
}

void wherry_engine_t::go_on_over(wherry_link_t link, io_thread_t* io_thread) {
  set_stream(std::move(link));
  rm_fd(_handle);
  _handle = add_fd(stream_fd_);
  if (!_input_stopped) set_pollin();
  watch_stream(io_thread);
  on_receivable();
}

void wherry_engine_t::watch_stream(io_thread_t* io_thread) {
  data_.emplace(io_thread, receive_fd_, *this, &wherry_engine_t::on_receivable);
  space_.emplace(io_thread, send_fd_, *this, &wherry_engine_t::on_sendable);
}

/// Adds properties that the kernel vouches for, if it does. The address says only that the peer is on this machine.
bool wherry_engine_t::init_properties(properties_t& properties) {
  if (stream_.is_open() && stream_.peer().vouched()) {
    const wherry::Peer& peer = stream_.peer();
    properties.emplace("Peer-Pid", std::to_string(peer.pid));
    properties.emplace("Peer-Uid", std::to_string(peer.uid));
    properties.emplace("Peer-Gid", std::to_string(peer.gid));
  }
  return zmtp_engine_t::init_properties(properties);
}

/// The base class may read at once, and delete this object if the peer is gone already. The greeting goes out at once,
/// too: connections then become ready in the order in which they were made, as with other transports.
void wherry_engine_t::plug(io_thread_t* io_thread, session_base_t* session) {
  watch_stream(io_thread);
  const call_t call(*this);
  zmtp_engine_t::plug(io_thread, session);
  if (!call.gone) out_event();
}

// Receiving ----------------------------------------------------------------------------------------------------------

/// Never blocks. Returns -1 with EAGAIN if there is nothing; with any other error, no more will come.
int wherry_engine_t::read(void* data, size_t size) {
  data_->resume();  // The base class reads again once the program has taken the messages that stopped the input.
  const std::span buffer(static_cast<std::byte*>(data), std::min(size, kMostPerCall));
  const bool in_place = size > static_cast<size_t>(_options.in_batch_size);
  if (in_place) {
    body_left_ = size;
    if (size >= wherry_large) {
      incoming_pages_.before(data, stream_.receive_capacity(), size);
      space_->await_idle_memory();
    }
  } else if (read_bytes_ >= kPiece) {
    let_program_catch_up(data);
  }
  const wherry::Result result = body_left_ ? read_aligned(buffer) : stream_.try_receive(buffer);
  read_bytes_ = result.bytes;
  if (read_bytes_ != 0) return static_cast<int>(read_bytes_);
  errno = result.would_block() ? EAGAIN : EPIPE;
  return -1;
}

/// Yields between large reads if the program lags behind. The allocator reuses what the program has freed. So a batch
/// at another place than the last means that the program still holds the last one, mostly because it waits for this
/// core. Without a yield one batch after the other would be filled, in memory that no cache holds or that comes fresh
/// from the kernel: after a millisecond the program would have dozens. If the yield took long, another thread used it:
/// then no yield for 64 times as long.
void wherry_engine_t::let_program_catch_up(const void* batch) {
  if (std::exchange(last_batch_, batch) == batch) return;
  const auto before = std::chrono::steady_clock::now();
  if (before < next_turn_) return;
  (void)::sched_yield();
  const auto after = std::chrono::steady_clock::now();
  if (after - before > kLongTurn) next_turn_ = after + kRestAfterLongTurn * (after - before);
}

/// Reads no further than the end of a message whose length is known. The decoder would take what follows along, up to a
/// whole batch. It would copy that once more if it belongs to a message that does not fit into the batch.
wherry::Result wherry_engine_t::read_aligned(std::span<std::byte> buffer) {
  if (*body_left_ != 0) {
    const wherry::Result result = stream_.try_receive(buffer.first(std::min(buffer.size(), *body_left_)));
    *body_left_ -= result.bytes;
    return result;
  }
  const wherry::Result head = stream_.try_receive(buffer.first(std::min(buffer.size(), kLargeHeader)));
  if (head.bytes == 0) return head;
  body_left_ = large_body(buffer.first(head.bytes));
  if (body_left_) return head;
  const wherry::Result rest = stream_.try_receive(buffer.subspan(head.bytes));
  return wherry::Result::moved(head.bytes + rest.bytes);
}

void wherry_engine_t::in_event() {
  if (stream_.is_open()) {
    on_receivable();
  } else {
    zmtp_engine_t::in_event();
  }
}

/// The base class reads once per event, but an event descriptor does not report bytes that were there before. So this
/// reads until the ring is empty, or asks for another turn. For each read the base class takes a new batch if the
/// program holds a message of the last. So the ring is checked before the next read. While its input is stopped the
/// base class treats an event as an error: it is not called then, and restart_input reads later.
void wherry_engine_t::on_receivable() {
  const call_t call(*this);
  std::size_t moved = 0;
  bool more = false;
  do {
    if (_input_stopped) {
      data_->end_turn();
      data_->pause();
      return;
    }
    zmtp_engine_t::in_event();
    if (call.gone) return;
    // In a handshake each step answers the last one.
    if (!is_established()) out_event();
    if (call.gone) return;
    moved += read_bytes_;
    more = read_bytes_ != 0 && !stream_.try_readable().would_block();
  } while (more && moved < kMostPerEvent);
  if (more) {
    data_->ask_for_turn();
  } else {
    data_->end_turn();
  }
}

// Sending ------------------------------------------------------------------------------------------------------------

/// Writes the greeting; messages are encoded into the ring. Returns 0 if the ring is full, -1 if sending is over:
/// reading will tell why.
int wherry_engine_t::write(const void* data, size_t size) {
  const wherry::Result result = stream_.try_send({static_cast<const std::byte*>(data), std::min(size, kMostPerCall)});
  return result.failed() ? -1 : static_cast<int>(result.bytes);  // on_sendable sends the rest
}

/// Called for space, and for a turn that was asked for. An empty send silences the descriptor.
void wherry_engine_t::on_sendable() {
  if (may_go_on_sending(stream_.try_send(std::span<const std::byte>()))) out_event();
}

/// Returns false if sending has failed: the peer's end is permanent. The reader reports it, after all that has arrived.
bool wherry_engine_t::may_go_on_sending(const wherry::Result& result) {
  if (!result.failed()) return true;
  space_->end_turn();
  space_->pause();
  // The peer wrote an invalid value where it says what it has read. The reader would never notice that.
  if (result.error == EPROTO) stream_.cancel();
  discard_messages();
  return false;
}

/// Discards the session's messages when sending is over. Behind them may be the news that its pipe has ended, for which
/// the session waits. The reader cannot end this connection while its input is stopped. If the session may connect
/// again, this takes only one message from it.
void wherry_engine_t::discard_messages() {
  if (!is_established() || (!ending_ && (!_input_stopped || std::exchange(discarded_, true)))) return;
  int rc = 0;
  do {
    msg_t message;
    rc = message.init();
    errno_assert(rc == 0);
    rc = (this->*_next_msg)(&message);
    message.close();
  } while (rc == 0 && ending_);
  all_written();
}

/// Called when there is space again, for the next turn, and for new messages; handles all cases alike. The base class
/// may also poll for output, to no effect: the descriptor that it polls is never writable.
void wherry_engine_t::out_event() {
  if (_encoder == nullptr || _outsize != 0) zmtp_engine_t::out_event();  // the greeting
  if (_encoder != nullptr && _outsize == 0) send_some(kMostPerEvent);
}

/// A turn that was asked for is kept until it is not needed, because asking and ending are system calls. This object
/// may be destroyed when the call returns.
void wherry_engine_t::send_some(size_t budget) {
  while (budget != 0) {
    const wherry::Regions space =
        stream_.reserve(std::min({budget, kPiece, std::max<size_t>(stream_.send_capacity() / 4, 1)}));
    if (space.empty()) {  // the ring is full, and the descriptor will report space; or sending is over
      if (may_go_on_sending(stream_.commit(0))) space_->end_turn();
      return;
    }
    size_t bytes = 0;
    Filled filled = encode_into(space.first, bytes);
    if (filled == Filled::all && !space.second.empty()) filled = encode_into(space.second, bytes);
    if (filled == Filled::dead) return;
    if (bytes != 0 && !may_go_on_sending(stream_.commit(bytes))) return;
    if (filled == Filled::some) {
      // Once established, the session calls out_event for new messages in any case. In a handshake the base class must
      // ask.
      if (!is_established()) _output_stopped = true;
      all_written();
      return space_->end_turn();
    }
    budget -= bytes;
  }
  space_->ask_for_turn();
}

/// Encodes messages until `space` is full (all) or there are no more (some).
wherry_engine_t::Filled wherry_engine_t::encode_into(std::span<std::byte> space, size_t& filled) {
  size_t used = 0;
  while (used < space.size()) {
    auto* place = reinterpret_cast<unsigned char*>(space.data() + used);
    if (large_left_ != 0) outgoing_pages_.before(large_, space.size() - used, large_left_);
    const size_t n = _encoder->encode(&place, space.size() - used);
    used += n;
    filled += n;
    if (n != 0) {
      // The header is encoded first, so this is a few bytes ahead of the encoder.
      const size_t passed = std::min(n, large_left_);
      large_left_ -= passed;
      large_ += passed;
      continue;
    }
    if ((this->*_next_msg)(&outgoing_) == -1) return errno == ECONNRESET ? Filled::dead : Filled::some;
    count_taken_message();
    large_ = static_cast<const unsigned char*>(outgoing_.data());
    large_left_ = outgoing_.size() < wherry_large ? 0 : outgoing_.size();
    if (large_left_ != 0) space_->await_idle_memory();
    if (large_left_ == 0 && outgoing_.size() >= wherry_medium) outgoing_heap_.before(large_, outgoing_.size());
    _encoder->load_msg(&outgoing_);
  }
  return Filled::all;
}

void wherry_engine_t::notify_when_written() {
  ending_ = true;
  draining_ = true;
  if (!is_established()) return all_written();
  out_event();
}

/// The drain waits for messages that were sent before it asked, not for those that a program sends afterwards.
void wherry_engine_t::count_taken_message() {
  if (!draining_ || (outgoing_.flags() & msg_t::more) != 0) return;
  if (_options.sndhwm > 0 && ++taken_in_draining_ > _options.sndhwm) all_written();
}

void wherry_engine_t::all_written() {
  if (std::exchange(draining_, false)) std::exchange(drain_, nullptr)->all_written();
}

bool wherry_engine_t::is_established() const {
  return _mechanism != nullptr && _mechanism->status() == mechanism_t::ready;
}

}  // namespace zmq
