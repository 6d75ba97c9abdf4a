// SPDX-License-Identifier: Apache-2.0
#include <precompiled.hpp>  // before anything else of libzmq's

#include "wherry_mapped_engine.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include <err.hpp>
#include "wherry_map.hpp"
#include "wherry_or_zmtp_engine.hpp"
#include "wherry_room.hpp"

namespace zmq {

i_engine* wherry_or_zmtp_engine(fd_t fd, const options_t& options, const endpoint_uri_pair_t& endpoints) {
  const std::string_view map = wherry_map_of_environment();
  if (!map.empty() && wherry_has_room(fd) &&
      (wherry_maps(map, endpoints.local) || wherry_maps(map, endpoints.remote))) {
    return new (std::nothrow) wherry_mapped_engine_t(fd, options, endpoints);
  }
  return new (std::nothrow) zmtp_engine_t(fd, options, endpoints);
}

// Until a stream carries the connection, libzmq's own engine runs, and not the parent class.
// NOLINTBEGIN(bugprone-parent-virtual-call)

wherry_mapped_engine_t::wherry_mapped_engine_t(fd_t socket, const options_t& options,
                                               const endpoint_uri_pair_t& endpoints)
    : wherry_engine_t(socket, options, endpoints),
      socket_(socket),
      binds_(endpoints.local_type == endpoint_type_bind) {}

wherry_mapped_engine_t::~wherry_mapped_engine_t() = default;

void wherry_mapped_engine_t::plug(io_thread_t* io_thread, session_base_t* session) {
  io_thread_ = io_thread;
  join_.emplace(io_thread, *this, _options, binds_);
  zmtp_engine_t::plug(io_thread, session);
}

void wherry_mapped_engine_t::out_event() {
  if (stage_ == stage_t::stream) {
    wherry_engine_t::out_event();
  } else {
    zmtp_engine_t::out_event();
  }
}

int wherry_mapped_engine_t::read(void* data, size_t size) {
  if (stage_ == stage_t::greeting) return read_greeting(static_cast<unsigned char*>(data), size);
  if (stage_ == stage_t::joining && read_joining() != 0) return -1;
  if (withheld_) {
    *static_cast<unsigned char*>(data) = *std::exchange(withheld_, std::nullopt);
    return 1;
  }
  return stage_ == stage_t::stream ? wherry_engine_t::read(data, size) : zmtp_engine_t::read(data, size);
}

int wherry_mapped_engine_t::read_greeting(unsigned char* data, size_t size) {
  const int n = zmtp_engine_t::read(data, size);
  // Peers of older versions are done with 12 bytes or less, and have a decoder then.
  if (n <= 0 || _decoder != nullptr) return n;
  const size_t kept = std::min<size_t>(n, received_.size() - received_bytes_);
  std::copy_n(data, kept, &received_[received_bytes_]);
  received_bytes_ += kept;
  if (received_bytes_ < received_.size()) return n;
  if (!begin_to_join()) {
    stage_ = stage_t::socket;
    join_->stop();
    return n;
  }
  stage_ = stage_t::joining;
  withheld_ = data[n - 1];
  if (sent_bytes_ == wherry_greeting_bytes) join_->start(peers_);
  if (n > 1) return n - 1;
  errno = EAGAIN;
  return -1;
}

/// Whether both ends have offered and can meet. If one is on another machine, its port number belongs to an unrelated
/// program here. The end that listens must have a port, and the other none.
bool wherry_mapped_engine_t::begin_to_join() {
  const auto offer = wherry_offer_t::decode(std::span(received_).last<wherry_offer_t::bytes>());
  if (!speaks_zmtp_3() || !offer) return false;
  peers_ = *offer;
  if (peers_.place != join_->offer().place) return false;
  return binds_ ? join_->offer().port != 0 && peers_.port == 0 : peers_.port != 0;
}

/// Called when the socket is readable although both ends should be silent: the peer has no stream, or is gone. Returns
/// 0 if reading continues over the socket.
int wherry_mapped_engine_t::read_joining() {
  unsigned char next = 0;
  if (::recv(socket_, &next, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EINTR)) {
    errno = EAGAIN;
    return -1;
  }
  join_->stop();
  stage_ = stage_t::socket;
  return 0;
}

int wherry_mapped_engine_t::write(const void* data, size_t size) {
  if (stage_ == stage_t::stream) return wherry_engine_t::write(data, size);
  if (sent_bytes_ >= wherry_greeting_bytes || stage_ == stage_t::socket) return zmtp_engine_t::write(data, size);
  std::array<unsigned char, wherry_greeting_bytes> piece{};
  size = std::min(size, piece.size() - sent_bytes_);
  std::copy_n(static_cast<const unsigned char*>(data), size, piece.begin());
  if (speaks_zmtp_3()) offer_within(std::span(piece).first(size));
  const int n = zmtp_engine_t::write(piece.data(), size);
  if (n <= 0) return n;
  sent_bytes_ += n;
  if (sent_bytes_ == wherry_greeting_bytes && stage_ == stage_t::joining) join_->start(peers_);
  return n;
}

// NOLINTEND(bugprone-parent-virtual-call)

/// Writes the offer into the part of the greeting's filler that lies in `piece`, the next bytes of the greeting.
void wherry_mapped_engine_t::offer_within(std::span<unsigned char> piece) {
  const std::array filler = join_->offer().encode();
  for (size_t i = 0; i < piece.size(); i++) {
    const size_t position = sent_bytes_ + i;
    if (position >= wherry_filler_begin) piece[i] = filler[position - wherry_filler_begin];
  }
}

/// Whether the peer speaks ZMTP 3. Decided as in the base class: by the peer's signature, and the version that follows
/// it.
bool wherry_mapped_engine_t::speaks_zmtp_3() const {
  constexpr size_t kVersion = 10;
  return received_bytes_ > kVersion && received_[0] == 0xff && (received_[kVersion - 1] & 1) != 0 &&
         received_[kVersion] >= ZMTP_3_x;
}

void wherry_mapped_engine_t::on_joined(wherry_link_t link) {
  // The socket stays open, because monitors and ZMQ_SRCFD report it.
  stage_ = stage_t::stream;
  go_on_over(std::move(link), io_thread_);
}

void wherry_mapped_engine_t::on_not_joined() {
  stage_ = stage_t::socket;
  in_event();
}

}  // namespace zmq
