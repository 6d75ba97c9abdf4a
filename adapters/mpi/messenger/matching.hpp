// SPDX-License-Identifier: Apache-2.0
// Matches messages to receives as fi_tagged(3) and fi_msg(3) require: receives in the order of posting, messages in the
// order of arrival, by source, and tagged ones by the bits of the tag that are not ignored. Independent of the mailbox.
//
// Owns nothing: receives and messages belong to pools. One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "adapters/mpi/layout/packet.hpp"
#include "buffers.hpp"
#include "link.hpp"
#include "list.hpp"
#include "pool.hpp"
#include "requests.hpp"

namespace wherry::mpi {

/// The properties of a message that are known before its payload.
struct Envelope {
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  std::uint64_t bytes = 0;
  bool tagged = false;
  bool has_data = false;
};

/// A receive that the application has posted.
struct Receive : Pattern, Hook, Pooled {
  void* context;
  Buffers buffers;
  bool wanted;          ///< its completion is to be reported
  bool several;         ///< it takes several messages
  std::uint64_t used;   ///< bytes of the buffer that messages occupy
  std::uint32_t parts;  ///< messages in the buffer that are still arriving

  void reset() {
    used = 0;
    parts = 0;
  }
};

/// A message for which no receive is posted.
struct Unexpected : Hook, Pooled {
  Link* from;
  Envelope envelope;
  bool wants_reply;
  bool announced;  ///< its payload is still with the sender
  std::uint64_t peer_request;
  union {
    std::array<RemotePiece, kMostRemotePieces> remote;  ///< of an announced message
    std::array<std::byte, kMostRemotePieces * sizeof(RemotePiece)>
        in_place;  ///< the payload of another, if it is short
  };
  std::uint16_t remote_pieces;
  std::unique_ptr<std::byte[]> payload;  ///< one that is too long for `in_place`
  Inflow* inflow;                        ///< set while the payload arrives
  Offer* own;                            ///< set for a message of this endpoint to itself whose payload is not copied
  void* claimed;                         ///< the context of the peek that claimed it
  int error;                             ///< errno value if the message will never be complete, else 0
  std::uint32_t round;                   ///< the round of Messenger::progress() in which it arrived

  void reset();
  /// Where the payload is kept. Only of a message that is not announced.
  [[nodiscard]] std::byte* bytes() { return payload != nullptr ? payload.get() : in_place.data(); }
};

class Matching {
 public:
  void post(Receive& receive) { posted_[receive.tagged ? 1 : 0].push_back(receive); }
  void keep(Unexpected& message) { unexpected_[message.envelope.tagged ? 1 : 0].push_back(message); }

  /// Returns the receive that a message from `source` goes to, or null. The receive stays posted.
  Receive* receive_for(const Envelope& message, std::uint64_t source);
  /// Returns the first message that matches, or null. The message stays kept.
  Unexpected* message_for(const Pattern& pattern);
  /// Returns the message that was claimed with this context, or null. It is no longer kept.
  Unexpected* take_claimed(const void* context);
  void claim(Unexpected& message, void* context);

  /// Returns the first posted receive with this context, or null.
  Receive* posted_with(const void* context);
  template <class Visit>
  void for_each_posted(Visit&& visit) {
    for (auto& list : posted_) list.for_each(visit);
  }
  template <class Visit>
  void for_each_unexpected(Visit&& visit) {
    for (auto& list : unexpected_) list.for_each(visit);
    claimed_.for_each(visit);
  }

 private:
  std::array<List<Receive>, 2> posted_;  // untagged, tagged
  std::array<List<Unexpected>, 2> unexpected_;
  List<Unexpected> claimed_;
};

}  // namespace wherry::mpi
