// SPDX-License-Identifier: Apache-2.0
// The data that the two ends of a connection within one process share. It exists until both are gone, so that neither
// accesses freed memory. May include: base, arch, layout, memory.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "fabric/connection.hpp"
#include "fabric/event_bell.hpp"
#include "fabric/inproc/segment.hpp"
#include "layout/bell_page.hpp"

namespace wherry::fabric::inproc {

/// One side of a connection.
struct Side {
  Side(const Offer& offer, Reach reach)
      : segment(offer, reach), shared(offer.shared), exposes(offer.exposes), greeting(offer.greeting) {}

  Segment segment;
  std::shared_ptr<memory::SharedMemory> shared;
  const bool exposes;
  layout::BellPage page{};         // tells whether the *other* side sleeps, as between processes
  std::array<EventBell, 2> bells;  // the bells that this side sleeps on
  std::atomic<bool> closed{false};
  Greeting greeting;
};

/// Returns this process as the peer.
Peer this_process(Address address);

struct Pair {
  std::array<std::unique_ptr<Side>, 2> sides;
};

/// The part of an end that all forms share: bells, sleeping, and detection of the other end's death.
class End : public Connection, private Exposure {
 public:
  End(std::shared_ptr<Pair> pair, std::size_t side, Peer peer);
  ~End() override;

  [[nodiscard]] std::span<std::byte> segment() const override { return own_.segment.own(); }
  [[nodiscard]] std::size_t remote_bytes() const override { return far_.segment.own().size(); }

  Exposure* exposure() override { return this; }

  void arm(Bell bell) override;
  void disarm(Bell bell) override;
  bool silence(Bell bell) override;
  Wake wait(Bell bell, Deadline deadline) override;
  int descriptor(Bell bell) override { return own_.bells[index(bell)].descriptor(); }
  void notify_self(Bell bell) override { own_.bells[index(bell)].notify(); }
  bool peer_gone() override { return far_.closed.load(std::memory_order_acquire); }  // DEATH

  [[nodiscard]] const Peer& peer() const override { return peer_; }
  [[nodiscard]] const Greeting& peer_greeting() const override { return far_.greeting; }

 protected:
  /// Returns memory of the arena, as this form reaches it.
  virtual std::shared_ptr<memory::RemoteRegion> reach_arena(std::uint64_t place, std::size_t bytes) = 0;
  bool notify(Bell bell) override {
    far_.bells[index(bell)].notify();
    return true;
  }
  [[nodiscard]] Side& own() const { return own_; }
  [[nodiscard]] Side& far() const { return far_; }
  /// Tells the other end that this one is gone. The destructor of each form calls it once, when this end cannot access
  /// the peer's memory any more.
  void leave() noexcept;

  /// Returns memory that is given by its address.
  virtual std::shared_ptr<memory::RemoteRegion> reach_private(std::uint64_t address);
  std::shared_ptr<memory::LocalRegion> expose(std::span<std::byte> memory) override;

 private:
  std::shared_ptr<memory::RemoteRegion> reach(const memory::RemoteKey& key, std::size_t bytes, int& error) override;

  struct alignas(64) Sleep {
    std::uint64_t epoch = 0;
  };

  std::shared_ptr<Pair> pair_;
  Side& own_;
  Side& far_;
  Peer peer_;
  std::array<Sleep, 2> sleeps_;
};

}  // namespace wherry::fabric::inproc
