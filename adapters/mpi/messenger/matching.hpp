// SPDX-License-Identifier: Apache-2.0
// Which message goes to which receive, as fi_tagged(3) and fi_msg(3) say: receives in the order of posting, messages in
// the order of arrival, by source, and tagged ones by the tag's bits that are not ignored. Knows no mailbox.
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

/// What is known of a message before its payload.
struct Envelope {
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  std::uint64_t bytes = 0;
  bool tagged = false;
  bool has_data = false;
};

/// A buffer that the application has posted.
struct Receive : Pattern, Hook, Pooled {
  void* context;
  Buffers buffers;
  bool wanted;          ///< its completion is to be reported
  bool several;         ///< it takes several messages
  std::uint64_t used;   ///< bytes given to them
  std::uint32_t parts;  ///< of them that are still arriving

  void reset() {
    used = 0;
    parts = 0;
  }
};

/// A message that no receive fits.
struct Unexpected : Hook, Pooled {
  Link* from;
  Envelope envelope;
  bool wants_reply;
  bool announced;  ///< its payload is still with the sender
  std::uint64_t peer_request;
  std::array<RemotePiece, kMostRemotePieces> remote;
  std::uint16_t remote_pieces;
  std::unique_ptr<std::byte[]> payload;
  Inflow* inflow;       ///< while the payload arrives
  Offer* own;           ///< a message to this endpoint itself that stays where it is
  void* claimed;        ///< the context of the peek that claimed it
  int error;            ///< an errno value: it will never be complete
  std::uint32_t round;  ///< of Messenger::progress, in which it arrived

  void reset();
};

class Matching {
 public:
  void post(Receive& receive) { posted_[receive.tagged ? 1 : 0].push_back(receive); }
  void keep(Unexpected& message) { unexpected_[message.envelope.tagged ? 1 : 0].push_back(message); }

  /// The receive that a message from `source` goes to, null if there is none. It stays posted.
  Receive* receive_for(const Envelope& message, std::uint64_t source);
  /// The message that fits, null if there is none. It stays kept.
  Unexpected* message_for(const Pattern& pattern);
  /// The message that was claimed with this context; it is no longer kept.
  Unexpected* take_claimed(const void* context);
  void claim(Unexpected& message, void* context);

  /// The first posted receive with this context.
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
