// SPDX-License-Identifier: Apache-2.0
// Which message goes to which receive, as fi_tagged(3) and fi_msg(3) say: receives in the order of posting, messages in
// the order of arrival, by source, and tagged ones by the tag's bits that are not ignored. Knows no mailbox.
//
// Owns nothing: requests and messages belong to the messenger's pools. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "adapters/mpi/layout/packet.hpp"
#include "buffers.hpp"
#include "list.hpp"
#include "pool.hpp"

namespace wherry::mpi {

struct Link;
struct Inflow;
struct Send;
struct Region;

inline constexpr std::uint64_t kAnySource = UINT64_MAX;

/// What is known of a message before its payload.
struct Envelope {
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  std::uint64_t bytes = 0;
  bool tagged = false;
  bool has_data = false;
};

/// A buffer that the application has posted; or a part of one that takes several messages.
struct Receive : Hook, Pooled {
  std::uint64_t source;
  std::uint64_t tag;
  std::uint64_t ignore;
  void* context;
  Buffers buffers;
  bool tagged;
  bool wanted;  ///< its completion is to be reported

  // One that takes several messages.
  bool several;
  std::uint64_t used;   ///< bytes given to messages
  std::uint32_t parts;  ///< messages that are still arriving
  Receive* whole;       ///< of a part: what it is a part of

  // The message, once it is matched.
  Link* from;
  Envelope envelope;
  bool wants_reply;  ///< the sender waits for `done`
  std::uint64_t peer_request;
  std::uint64_t arrived;  ///< bytes from the front on, of those that are pulled or streamed
  std::uint64_t pulled;   ///< bytes at the end, of one that is streamed from the front
  std::array<RemotePiece, kMostRemotePieces> remote;
  std::uint16_t remote_pieces;
  bool streams;  ///< the message was asked for by `want`

  // One that no application has posted: of a one-sided operation (messenger_remote.cc, messenger_target.cc).
  enum class Role : std::uint8_t { message, write, read };
  Role role;
  std::uint64_t request;                           ///< of `read`: the number of the Send that it completes
  int refused;                                     ///< of `write`: why the payload is dropped
  std::array<Region*, kMostRemoteRanges> regions;  ///< of `write`: whose memory the buffers are

  void reset();
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
  std::uint64_t arrived;  ///< bytes of the payload
  Inflow* inflow;         ///< while the payload arrives
  Send* own;              ///< a message to this endpoint itself that stays where it is
  void* claimed;          ///< the context of the peek that claimed it
  int error;              ///< an errno value: it will never be complete
  std::uint32_t round;    ///< the messenger's, in which it arrived

  void reset();
};

/// What a message takes here that is neither announced nor still in its sender's buffer.
inline std::uint64_t kept_bytes(const Unexpected& message) { return sizeof(message) + message.envelope.bytes; }

class Matching {
 public:
  void post(Receive& receive) { posted_[receive.tagged ? 1 : 0].push_back(receive); }
  void keep(Unexpected& message) { unexpected_[message.envelope.tagged ? 1 : 0].push_back(message); }

  /// The receive that a message from `source` goes to, null if there is none. It stays posted.
  Receive* receive_for(const Envelope& message, std::uint64_t source);
  /// The message that the receive gets, null if there is none. It stays kept.
  Unexpected* message_for(const Receive& receive);
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

/// Where a message comes from, as receives name it: the link's address (messenger.hpp), kAnySource while it is unknown.
std::uint64_t source_of(const Link* link);

}  // namespace wherry::mpi
