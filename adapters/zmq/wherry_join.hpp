// SPDX-License-Identifier: Apache-2.0
//
// How both ends of a tcp or ipc connection get a stream of Wherry. The bound end listens on a port for this one
// connection. The other end connects to it, shows the token that it was offered, and waits for an answer of one byte.
// If a step fails, or takes longer than a third of the handshake's limit, the port or the stream is closed. The other
// end notices that, so neither keeps a stream that the other does not use.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include <wherry/stream.hpp>

#include <io_object.hpp>
#include <options.hpp>
#include "wherry_engine.hpp"
#include "wherry_offer.hpp"

namespace zmq {

class wherry_mapped_engine_t;

class wherry_join_t final : public io_object_t {
 public:
  /// Runs in this I/O thread and tells `engine` of the result: on_joined or on_not_joined, once, from an event.
  wherry_join_t(io_thread_t* io_thread, wherry_mapped_engine_t& engine, const options_t& options, bool binds);
  ~wherry_join_t() override;

  /// Returns this end's offer. The bound end starts to listen, and offers port 0 if it cannot.
  const wherry_offer_t& offer();
  /// To be called when both greetings are complete and both ends have offered.
  void start(const wherry_offer_t& peers);
  /// Gives up without telling the engine.
  void stop();

 private:
  void in_event() override;
  void timer_event(int id) override;
  bool advance();
  void give_up();
  std::optional<wherry::Stream> accept_or_connect();
  void hold(wherry::Stream stream);
  void watch(fd_t fd);
  void unwatch();

  /// What the connecting end sends first: a mark, and the token.
  using proof_t = std::array<std::byte, 8 + sizeof(wherry_offer_t::token_t)>;
  static proof_t proof_of(const wherry_offer_t& offer);

  wherry_mapped_engine_t& engine_;
  const options_t& options_;
  const bool binds_;
  std::optional<wherry_offer_t> own_;
  wherry_offer_t peers_;
  std::optional<wherry::Listener> listener_;
  std::optional<wherry::Connecting> connecting_;
  std::optional<wherry_link_t> link_;
  proof_t received_{};  ///< the proof; at the connecting end its first byte is the answer
  std::size_t received_bytes_ = 0;
  std::optional<handle_t> watched_;
  bool starts_ = false;   ///< the timer of the start runs
  bool limited_ = false;  ///< the timer of the limit runs
};

}  // namespace zmq
