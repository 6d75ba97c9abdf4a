// SPDX-License-Identifier: Apache-2.0
// Requests of the application, and the state of those that wait.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "buffers.hpp"
#include "completion.hpp"
#include "link.hpp"
#include "list.hpp"
#include "pool.hpp"
#include "regions.hpp"

namespace wherry::mpi {

inline constexpr std::size_t kMostInjected = 16 << 10;

struct SendRequest {
  Link* to = nullptr;
  Buffers buffers;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  void* context = nullptr;
  bool tagged = false;
  bool has_data = false;
  bool wanted = true;
  bool reported = true;   ///< wanted, or counted; otherwise only a failure is reported
  bool inject = false;    ///< the caller may reuse the buffers at once; at most kMostInjected bytes
  bool delivery = false;  ///< complete only when the receiver has it
  bool transmit = false;  ///< complete no sooner than the payload has left this process
};

/// Which messages a receive matches.
struct Pattern {
  std::uint64_t source = kAnySource;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;  ///< bits of the tag that may differ
  bool tagged = false;
};

struct ReceiveRequest : Pattern {
  Buffers buffers;
  void* context = nullptr;
  bool wanted = true;
  bool several = false;  ///< FI_MULTI_RECV: takes messages until less than the least room is left
};

/// A request that only the peer's answer completes.
struct Request : Pooled {
  Link* to;
  bool sent;          ///< its packet has left
  bool reports;       ///< `completion` is still to be reported
  bool is_injection;  ///< counted in Limits::injections
  Completion completion;

  void reset_request() {
    to = nullptr;
    sent = reports = is_injection = false;
    completion = Completion();
  }
};

/// A payload that stays in this process until the peer has read it or asked for it; or the wait for delivery of one
/// that has left. Both end with `done`.
struct Offer : Request, Hook {
  Buffers payload;                                 ///< what the peer may ask for
  std::unique_ptr<std::byte[]> copy;               ///< the payload's memory, if that is not the application's
  std::array<Region*, kMostRemoteRanges> regions;  ///< whose memory it is, of an answer to `read`
  std::uint64_t kept;                              ///< its share of Link::kept
  bool is_held;                                    ///< counted in Link::held
  bool streams;                                    ///< the peer has asked for the payload
  std::uint64_t stream;                            ///< the peer's number of the transfer
  std::uint64_t wanted;                            ///< bytes that the peer has asked for
  std::uint64_t streamed;                          ///< bytes of these that have left

  void reset() {
    reset_request();
    payload = Buffers();
    copy.reset();
    regions.fill(nullptr);
    kept = stream = wanted = streamed = 0;
    is_held = streams = false;
  }
  /// Replaces the payload by a copy.
  void copy_payload() {
    if (copy == nullptr && payload.bytes() > 0) payload = payload.copied(copy);
  }
};

/// A packet that waits for room at its peer.
struct Packet : Hook, Pooled {
  Link* to;
  Wire wire;
  Buffers payload;
  std::unique_ptr<std::byte[]> copy;               ///< the payload's memory, if that is not the application's
  std::array<Region*, kMostRemoteRanges> regions;  ///< whose memory it is, of an answer to `read`
  std::uint64_t copied;                            ///< its share of Link::copied
  Request* request;                                ///< waits for the answer to the packet; null if none does
  bool reports;                                    ///< `completion` is to be reported once it has left
  Completion completion;

  void reset() {
    to = nullptr;
    payload = Buffers();
    copy.reset();
    regions.fill(nullptr);
    copied = 0;
    request = nullptr;
    reports = false;
  }
  void copy_payload() {
    if (copy == nullptr && payload.bytes() > 0) payload = payload.copied(copy);
  }
};

}  // namespace wherry::mpi
