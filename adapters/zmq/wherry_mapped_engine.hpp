// SPDX-License-Identifier: Apache-2.0
//
// A connection over tcp or ipc that continues over a stream of Wherry. C++20: none of libzmq's own sources includes
// this.
//
// It begins like any other, with ZMTP's greeting over the socket. In the filler of the greeting each end says whether
// it can use Wherry, and where it is. If both can and are on one machine, both hold back what follows the greeting
// until they have a stream (wherry_join.hpp), and send it over that. Otherwise it goes over the socket. The socket's
// connection does not change: through a tunnel, a proxy or a forwarded port both ends find each other, or see that they
// are not on one machine.
//
//   greeting --both offer--> joining --on_joined--> stream
//      |                        |
//      '---one does not---------'--on_not_joined, or the peer goes on over the socket--> socket
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "wherry_engine.hpp"
#include "wherry_join.hpp"
#include "wherry_offer.hpp"

namespace zmq {

class wherry_mapped_engine_t final : public wherry_engine_t {
 public:
  wherry_mapped_engine_t(fd_t socket, const options_t& options, const endpoint_uri_pair_t& endpoints);
  ~wherry_mapped_engine_t() override;

  void plug(io_thread_t* io_thread, session_base_t* session) override;
  void out_event() override;

  /// This object may be destroyed when either returns.
  void on_joined(wherry_link_t link);
  void on_not_joined();

 protected:
  int read(void* data, size_t size) override;
  int write(const void* data, size_t size) override;

 private:
  enum class stage_t { greeting, joining, socket, stream };

  int read_greeting(unsigned char* data, size_t size);
  int read_joining();
  bool begin_to_join();
  void offer_within(std::span<unsigned char> piece);
  [[nodiscard]] bool speaks_zmtp_3() const;

  const fd_t socket_;
  const bool binds_;
  io_thread_t* io_thread_ = nullptr;
  stage_t stage_ = stage_t::greeting;
  std::optional<wherry_join_t> join_;
  std::array<unsigned char, wherry_greeting_bytes> received_{};
  size_t received_bytes_ = 0;  ///< bytes of the peer's greeting
  size_t sent_bytes_ = 0;      ///< bytes of this side's greeting
  /// The last byte of the peer's greeting. While it is held back, the base class waits for it and does nothing else.
  std::optional<unsigned char> withheld_;
  wherry_offer_t peers_;
};

}  // namespace zmq
