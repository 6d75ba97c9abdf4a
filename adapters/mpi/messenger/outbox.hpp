// SPDX-License-Identifier: Apache-2.0
// Sends packets to peers. A packet is written into the peer's mailbox as a whole, or waits. Packets of one link leave
// in the order in which they were sent. A packet may have a completion, which is reported once the packet has left. The
// outbox does not interpret packets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <wherry/mailbox.hpp>

#include "adapters/mpi/layout/packet.hpp"
#include "completion.hpp"
#include "link.hpp"
#include "list.hpp"
#include "pool.hpp"
#include "requests.hpp"

namespace wherry::mpi {

class Outbox {
 public:
  Outbox(Mailbox& mailbox, Reporter& reporter) : mailbox_(mailbox), reporter_(reporter) {}

  enum class Push : std::uint8_t { sent, blocked, lost };
  /// Writes the packet now, ahead of queued ones.
  Push push(Link& link, const Wire& wire, const Buffers& payload = {}) noexcept;
  /// Writes a chunk of a stream, only if no packet is queued: as much of the payload from `offset` on as there is room
  /// for now, at most `bytes`. If it is sent, head.bytes and `bytes` are the chunk's length.
  Push push_chunk(Link& link, Wire& wire, const Buffers& payload, std::uint64_t offset, std::uint64_t& bytes) noexcept;

  /// What to keep with a packet that has to wait.
  struct Waiting {
    Request* request = nullptr;              ///< waits for the answer to the packet
    const Completion* completion = nullptr;  ///< to be reported once the packet has left
    bool copies = false;                     ///< the payload's memory may change after the call
    std::array<Region*, kMostRemoteRanges> regions{};
    std::unique_ptr<std::byte[]> copy = nullptr;  ///< owns the payload's memory, if it is set
  };
  /// Sends the packet, now or once there is room. Returns 0, or an errno value if the link is lost; nothing is reported
  /// then. Throws std::bad_alloc as queue().
  int send(Link& link, const Wire& wire, const Buffers& payload, Waiting waiting);
  int send(Link& link, const Wire& wire) { return send(link, wire, Buffers(), {}); }
  /// Appends a packet to the queue. Throws std::bad_alloc; the queue is then unchanged.
  void queue(Link& link, const Wire& wire, const Buffers& payload, Waiting&& waiting);
  /// Sends a head alone. Drops it if the link is lost.
  void control(Link& link, Operation operation, std::uint64_t request, std::uint64_t data);
  /// Sends this notice ahead of the queue. It replaces a notice that has not left yet.
  void notify(Link& link, Operation notice) noexcept;

  /// Flushes the queue. Returns true if packets still wait for room.
  bool is_blocked(Link& link) noexcept {
    if (!link.queue.empty()) flush(link);
    return !link.queue.empty();
  }
  [[nodiscard]] bool is_idle() const { return busy_.empty(); }
  /// Sends queued packets. Returns true if one has left.
  bool flush() noexcept;
  /// Fails or drops everything queued.
  void lose(Link& link, int error);
  /// Copies queued payloads that lie in this region: no packet refers to it afterwards. Throws std::bad_alloc.
  void revoke(const Region& region);
  [[nodiscard]] std::size_t size() const { return packets_.taken(); }

 private:
  bool flush(Link& link) noexcept;
  bool push_notice(Link& link) noexcept;
  void visit_again(Link& link) {
    if (!link.is_linked()) busy_.push_back(link);
  }
  Push write(Link& link, Mailbox::Outgoing& message) noexcept;
  void has_left(Packet& packet, int error);

  Mailbox& mailbox_;
  Reporter& reporter_;
  Pool<Packet> packets_;
  List<Link> busy_;  ///< links with packets or a notice that wait for room
};

}  // namespace wherry::mpi
