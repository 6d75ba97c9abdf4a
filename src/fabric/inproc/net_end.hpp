// SPDX-License-Identifier: Apache-2.0
// The end of an "inproc-net" connection.
#pragma once

#include <chrono>
#include <memory>
#include <span>

#include "base/fork_generation.hpp"
#include "fabric/inproc/net_link.hpp"

namespace wherry::fabric::inproc {

/// Shared by both ends: the sides, and the network between them.
struct NetPair : Pair {
  std::shared_ptr<NetLink> link;
};

/// An end of an "inproc-net" connection. A forked child's copy is dead.
class NetEnd final : public End {
 public:
  NetEnd(const std::shared_ptr<NetPair>& pair, std::size_t side, Address peer_address);
  ~NetEnd() override;

  std::size_t put(std::uint64_t offset, std::span<const std::byte> source) override;
  using Connection::put_and_signal;
  bool put_and_signal(std::uint64_t offset, std::span<const std::byte> source, std::uint64_t word, std::uint64_t value,
                      Bell bell) override;
  std::shared_ptr<std::byte[]> buffer(std::size_t bytes) override;
  [[nodiscard]] bool sends_any_memory() const override { return false; }
  bool get(std::span<std::byte> destination, std::uint64_t offset) override;
  bool signal(std::uint64_t offset, std::uint64_t value, Bell bell) override;
  Result flush(Deadline deadline) override;
  [[nodiscard]] bool progresses() const override { return true; }
  void progress(Bell bell) override;
  void end_progress(Bell bell) override;

  void arm(Bell bell) override;
  void disarm(Bell bell) override;
  bool silence(Bell bell) override;
  Wake wait(Bell bell, Deadline deadline) override;
  void notify_self(Bell bell) override;
  bool peer_gone() override;

  /// For tests: as NetLink::cut and NetLink::heal.
  void cut(std::chrono::nanoseconds limit) { link_->cut(limit); }
  void heal() { link_->heal(); }

 protected:
  std::shared_ptr<memory::LocalRegion> expose(std::span<std::byte> memory) override;
  std::shared_ptr<memory::RemoteRegion> reach_arena(std::uint64_t place, std::size_t bytes) override;
  std::shared_ptr<memory::RemoteRegion> reach_private(std::uint64_t address) override;

 private:
  [[nodiscard]] std::uint64_t far_address(std::uint64_t offset) const {
    return reinterpret_cast<std::uint64_t>(far().segment.far()) + offset;
  }

  const std::shared_ptr<NetLink> link_;
  const std::size_t side_;
  const Origin origin_;
};

}  // namespace wherry::fabric::inproc
