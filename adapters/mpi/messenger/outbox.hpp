// SPDX-License-Identifier: Apache-2.0
// Packets on their way to peers. Each is written into the peer's mailbox as a whole or not yet; those of one link leave
// in the order in which they were sent. A packet may have a completion that is reported once it has left. What packets
// mean is for others to know.
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
  /// Writes the packet now, ahead of those that wait for room.
  Push push(Link& link, const Wire& wire, const Buffers& payload = {}) noexcept;
  /// The same of a chunk of a stream: only where no packet waits. Sends as much of the payload from `offset` on as
  /// there is room for now, at most `bytes`, and sets head.bytes. `bytes` is the length of the chunk afterwards.
  Push push_chunk(Link& link, Wire& wire, const Buffers& payload, std::uint64_t offset, std::uint64_t& bytes) noexcept;

  /// What becomes of a packet that has to wait.
  struct Waiting {
    Request* request = nullptr;              ///< waits for the answer to it
    const Completion* completion = nullptr;  ///< to be reported once it has left
    bool copies = false;                     ///< the payload's memory may change after the call
    std::array<Region*, kMostRemoteRanges> regions{};
    std::unique_ptr<std::byte[]> copy = nullptr;  ///< the payload's memory, to be kept
  };
  /// Sends the packet, now or once there is room. Returns 0, or an errno value if the link is lost: then nothing was
  /// reported. Throws std::bad_alloc as queue().
  int send(Link& link, const Wire& wire, const Buffers& payload, Waiting waiting);
  int send(Link& link, const Wire& wire) { return send(link, wire, Buffers(), {}); }
  /// Puts a packet behind those that wait. Throws std::bad_alloc; the queue is unchanged then.
  void queue(Link& link, const Wire& wire, const Buffers& payload, Waiting&& waiting);
  /// A head alone; dropped if the link is lost.
  void control(Link& link, Operation operation, std::uint64_t request, std::uint64_t data);
  /// Sends this notice ahead of what waits for room. It replaces one that has not left yet.
  void notify(Link& link, Operation notice) noexcept;

  /// Packets wait for room there, and still do after a try.
  bool is_blocked(Link& link) noexcept {
    if (!link.queue.empty()) flush(link);
    return !link.queue.empty();
  }
  [[nodiscard]] bool is_idle() const { return busy_.empty(); }
  /// Sends what waits. True if anything has left.
  bool flush() noexcept;
  /// What waits fails, or is dropped.
  void lose(Link& link, int error);
  /// No packet names this region after that.
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
