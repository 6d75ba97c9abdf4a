// SPDX-License-Identifier: Apache-2.0
// One end of a connection between two processes, or within one. It has four descriptors:
//   - the rendezvous socket: the peer rings this side's data bell on it, and its end tells the peer's death;
//   - the companion: a second socket, the same for the space bell;
//   - an epoll set for each of the two bells.
// In addition the peer's arena, one descriptor for all connections to that peer.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "base/unique_fd.hpp"
#include "fabric/connection.hpp"
#include "fabric/shm/memory.hpp"
#include "fabric/shm/own_bell.hpp"
#include "fabric/shm/process_memory.hpp"
#include "fabric/shm/socket_names.hpp"
#include "memory/arena_view.hpp"

namespace wherry::fabric::shm {

/// This side's half of a connection: its memory and its bells. Created before the peer's half is known.
struct OwnSide {
  /// Throws Error.
  explicit OwnSide(const Offer& offer);

  /// Returns the hello that describes this side.
  /// @param companion  the number of the companion that this side has opened; 0: none
  [[nodiscard]] layout::ShmHello hello(std::uint16_t node, std::uint16_t port, std::uint64_t companion = 0) const;
  [[nodiscard]] std::vector<int> descriptors() const;

  bool compact;
  OwnMemory memory;
  std::shared_ptr<memory::SharedMemory> shared;
  std::shared_ptr<memory::ArenaView> arena;       ///< null: this side exposes nothing
  std::array<std::unique_ptr<OwnBell>, 2> bells;  ///< null if the offer wants none
  Greeting greeting;
};

/// The peer's half of a connection. Its memory is checked and mapped.
struct PeersSide {
  /// `packet` must be well-formed. Throws Error: EPROTO if its memory cannot be trusted; ENOMEM, EMFILE.
  PeersSide(Packet packet, const Address& peer);

  bool compact;
  bool has_bells;
  bool takes_interrupts;
  std::size_t segment_bytes;
  Mapping memory;
  Mapping shown;
  std::shared_ptr<memory::ArenaView> arena;  ///< null: the peer exposes nothing
  Greeting greeting{};
};

class ShmConnection final : public Connection, private Exposure {
 public:
  /// Throws Error(ENOMEM, ENOSPC).
  /// @param socket     invalid: the caller keeps the socket, and must itself detect the peer's end
  /// @param companion  invalid: this side has no bells, or the peer rings only that for data
  ShmConnection(OwnSide own, PeersSide peers, UniqueFd socket, Peer peer, UniqueFd companion = UniqueFd());

  /// Closes the descriptor of this side's memory. Call it once the peer has received the descriptor.
  void handed_over() { memory_.drop_descriptor(); }

  [[nodiscard]] std::span<std::byte> segment() const override { return memory_.segment(); }
  [[nodiscard]] std::byte* map() const override { return remote_; }
  [[nodiscard]] std::size_t remote_bytes() const override { return remote_bytes_; }
  [[nodiscard]] std::span<const std::byte> shown() const override { return {shown_.start(), shown_.size()}; }

  std::size_t put(std::uint64_t offset, std::span<const std::byte> source) override;
  bool get(std::span<std::byte> destination, std::uint64_t offset) override;
  Exposure* exposure() override { return this; }
  PrivateMemory* private_memory() override { return &*private_memory_; }
  bool signal(std::uint64_t offset, std::uint64_t value, Bell bell) override;
  Result flush(Deadline /*deadline*/) override {
    return gone_.load(std::memory_order_relaxed) ? Result::failure(ECONNRESET) : Result::moved(0);
  }

  void arm(Bell bell) override;
  void disarm(Bell bell) override;
  bool silence(Bell bell) override;
  Wake wait(Bell bell, Deadline deadline) override;
  int descriptor(Bell bell) override;
  int event_descriptor(Bell bell) override;
  void notify_self(Bell bell) override;
  bool peer_gone() override;
  bool peer_gone_when_armed(Bell bell) override;

  [[nodiscard]] const Peer& peer() const override { return peer_; }
  [[nodiscard]] const Greeting& peer_greeting() const override { return greeting_; }

 protected:
  bool notify(Bell bell) override;

 private:
  std::shared_ptr<memory::LocalRegion> expose(std::span<std::byte> memory) override;
  std::shared_ptr<memory::RemoteRegion> reach(const memory::RemoteKey& key, std::size_t bytes, int& error) override;

  /// The state of the thread that sleeps on a bell.
  struct alignas(64) Sleep {
    std::unique_ptr<OwnBell> bell;      ///< null: this side has no bells
    std::uint64_t epoch = 0;            ///< as last written into the peer's bell page
    std::atomic<bool> may_ring{false};  ///< armed, or rung by this side, since it was last silenced
    bool saw_socket = false;            ///< the last arm() looked at the socket, and would have seen the peer's end
  };

  void take_bells(std::array<std::unique_ptr<OwnBell>, 2> bells);
  [[nodiscard]] layout::BellPage& peers_page() const;

  OwnMemory memory_;
  Mapping peer_mapping_;
  Mapping shown_;
  const bool exposes_;
  std::shared_ptr<memory::ArenaView> peers_arena_;  ///< null: the peer exposes nothing
  std::optional<ShmPrivateMemory> private_memory_;
  std::byte* remote_ = nullptr;
  std::size_t remote_bytes_ = 0;
  std::array<UniqueFd, 2> sockets_;  ///< [bell]: both sides ring that bell of the other on it
  std::array<Sleep, 2> sleeps_;
  std::array<PeerBell, 2> peer_bells_;
  bool peer_has_bells_ = false;
  std::atomic<bool> gone_{false};
  Peer peer_;
  Greeting greeting_{};
};

}  // namespace wherry::fabric::shm
