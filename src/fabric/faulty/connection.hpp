// SPDX-License-Identifier: Apache-2.0
// A connection with injected faults, as far as the contract allows them. May include: base, arch, layout.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "fabric/connection.hpp"
#include "fabric/faulty/plan.hpp"

namespace wherry::fabric::faulty {

/// Simulates the peer's death only to this side. The peer notices it when this connection is destroyed, as its owner
/// should do then. This side's segment and map() stay valid until that.
class FaultyConnection final : public Connection {
 public:
  FaultyConnection(std::unique_ptr<Connection> inner, const FaultPlan& plan);
  ~FaultyConnection() override;

  [[nodiscard]] std::span<std::byte> segment() const override { return inner_->segment(); }
  [[nodiscard]] std::byte* map() const override { return plan_.hide_map != 0 ? nullptr : inner_->map(); }
  [[nodiscard]] std::size_t remote_bytes() const override { return inner_->remote_bytes(); }
  [[nodiscard]] std::span<const std::byte> shown() const override {
    return plan_.hide_map != 0 ? std::span<const std::byte>{} : inner_->shown();
  }

  std::size_t put(std::uint64_t offset, std::span<const std::byte> source) override;
  using Connection::put_and_signal;
  bool put_and_signal(std::uint64_t offset, std::span<const std::byte> source, std::uint64_t word, std::uint64_t value,
                      Bell bell) override;
  std::shared_ptr<std::byte[]> buffer(std::size_t bytes) override { return inner_->buffer(bytes); }
  [[nodiscard]] bool sends_any_memory() const override { return inner_->sends_any_memory(); }
  void progress(Bell bell) override { inner_->progress(bell); }
  void end_progress(Bell bell) override { inner_->end_progress(bell); }
  [[nodiscard]] bool progresses() const override { return inner_->progresses(); }
  bool get(std::span<std::byte> destination, std::uint64_t offset) override;
  Exposure* exposure() override { return exposure_.get(); }
  PrivateMemory* private_memory() override { return private_memory_.get(); }
  bool signal(std::uint64_t offset, std::uint64_t value, Bell bell) override;
  Result flush(Deadline deadline) override;

  void arm(Bell bell) override;
  void disarm(Bell bell) override { inner_->disarm(bell); }
  bool silence(Bell bell) override;
  Wake wait(Bell bell, Deadline deadline) override;
  int descriptor(Bell bell) override { return inner_->descriptor(bell); }
  int event_descriptor(Bell bell) override;
  void notify_self(Bell bell) override { inner_->notify_self(bell); }
  bool peer_gone() override;

  [[nodiscard]] const Peer& peer() const override { return peer_; }
  [[nodiscard]] const Greeting& peer_greeting() const override { return inner_->peer_greeting(); }

 protected:
  bool notify(Bell bell) override;

 private:
  friend class FaultyExposure;
  friend class FaultyPrivateMemory;
  friend class FaultyRegion;

  struct Held {
    std::shared_ptr<memory::RemoteRegion> reached;  // null: the peer's segment
    std::uint64_t offset;
    std::span<const std::byte> source;
  };

  /// Counts a call. False if the connection is dead, perhaps since this call.
  bool lives();
  void delay(Dice& dice) const;
  /// Returns how many of `bytes` of private memory the plan lets an access reach.
  std::size_t allowed(std::size_t bytes, Dice& dice);
  void hold(std::shared_ptr<memory::RemoteRegion> reached, std::uint64_t offset, std::span<const std::byte> source);
  /// Holds a put back, and releases others if too many are held. False if the connection is dead.
  bool hold_back(std::shared_ptr<memory::RemoteRegion> reached, std::uint64_t offset,
                 std::span<const std::byte> source);
  bool release(std::size_t which);
  bool release_all();
  bool put_whole(std::uint64_t offset, std::span<const std::byte> source);
  Result await_death(const Deadline& deadline);
  bool store_and_announce(std::uint64_t offset, std::uint64_t value, Bell bell);

  std::unique_ptr<Connection> inner_;
  const FaultPlan plan_;
  const Peer peer_;
  std::unique_ptr<Exposure> exposure_;  // null: the wrapped connection has none
  // Null: the wrapped connection has none, or it is hidden with the map.
  std::unique_ptr<PrivateMemory> private_memory_;
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<bool> dead_{false};
  std::array<std::atomic<int>, 2> event_descriptors_{-1, -1};  // [bell]: -1 until it was asked for
  std::mutex mutex_;                                           // guards puts_ and held_
  Dice puts_;
  std::vector<Held> held_;
  std::array<Dice, 2> wakes_;  // [bell that is rung]: used by its announcing thread
  std::array<Dice, 2> arms_;   // [bell that is armed]: used by its waiting thread
  Dice reads_;                 // used by the receiving thread
  Dice writes_;                // used by the sending thread
};

}  // namespace wherry::fabric::faulty
