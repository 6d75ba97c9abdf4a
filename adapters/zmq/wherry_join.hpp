// SPDX-License-Identifier: Apache-2.0
//
// How both ends of a tcp or ipc connection come to a stream of Wherry's. The end that was bound listens on a port of
// its own for this one connection; the other end connects to it, shows the token it was offered and waits for an
// answer of one byte. Whatever fails on the way, or takes longer than a third of the handshake may, closes the port or
// the stream, of which the other end hears: neither is left with a stream that the other does not use.
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
  /// Runs in that I/O thread and tells `engine` of the result: on_joined or on_not_joined, once, from an event.
  wherry_join_t(io_thread_t* io_thread, wherry_mapped_engine_t& engine, const options_t& options, bool binds);
  ~wherry_join_t() override;

  /// What this end says of itself. The end that was bound begins to listen, and says port 0 if it cannot.
  const wherry_offer_t& offer();
  /// Both greetings are through, and both ends have offered.
  void start(const wherry_offer_t& peers);
  /// Gives up, without a word to the engine.
  void stop();

 private:
  void in_event() override;
  void timer_event(int id) override;
  bool advance();
  void give_up();
  std::optional<wherry::Stream> meet();
  void hold(wherry::Stream stream);
  void watch(fd_t fd);
  void unwatch();

  /// What the connecting end shows first: a mark, and the token.
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
  proof_t heard_{};  ///< the proof, or the first byte of it the answer
  std::size_t heard_bytes_ = 0;
  std::optional<handle_t> watched_;
  bool starts_ = false;   ///< the timer of the start runs
  bool limited_ = false;  ///< the timer of the limit runs
};

}  // namespace zmq
