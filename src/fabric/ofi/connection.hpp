// SPDX-License-Identifier: Apache-2.0
// The Connection of the ofi fabric: a Link with a segment.
#pragma once

#include <memory>

#include "base/fork_generation.hpp"
#include "fabric/connection.hpp"
#include "fabric/ofi/link.hpp"
#include "fabric/ofi/own_segment.hpp"

namespace wherry::fabric::ofi {

/// A connection to another host. A forked child's copy is dead.
class OfiConnection final : public Connection, private Exposure {
 public:
  /// `link` must have begun (dial or expect).
  OfiConnection(OwnSegment segment, std::shared_ptr<Link> link, Peer peer, bool exposes);
  ~OfiConnection() override;

  [[nodiscard]] std::span<std::byte> segment() const override { return segment_.bytes(); }
  [[nodiscard]] std::size_t remote_bytes() const override { return link_->meeting().peer.segment_bytes; }
  Exposure* exposure() override { return this; }

  std::size_t put(std::uint64_t offset, std::span<const std::byte> source) override;
  using Connection::put_and_signal;
  bool put_and_signal(std::uint64_t offset, std::span<const std::byte> source, std::uint64_t word, std::uint64_t value,
                      Bell bell) override;
  bool get(std::span<std::byte> destination, std::uint64_t offset) override;
  bool signal(std::uint64_t offset, std::uint64_t value, Bell bell) override;
  Result flush(Deadline deadline) override;
  void progress(Bell bell) override;
  void end_progress(Bell bell) override;
  [[nodiscard]] bool progresses() const override { return true; }

  void arm(Bell bell) override;
  void disarm(Bell bell) override;
  bool silence(Bell bell) override;
  Wake wait(Bell bell, Deadline deadline) override;
  int descriptor(Bell bell) override { return link_->bells().descriptor(bell); }
  void notify_self(Bell bell) override;
  bool peer_gone() override { return origin_.inherited() || link_->is_gone(); }

  [[nodiscard]] const Peer& peer() const override { return peer_; }
  [[nodiscard]] const Greeting& peer_greeting() const override { return link_->meeting().peer.greeting; }

 protected:
  /// Never called: only load/store fabrics announce.
  bool notify(Bell /*bell*/) override { return true; }

 private:
  std::shared_ptr<memory::LocalRegion> expose(std::span<std::byte> memory) override;
  std::shared_ptr<memory::RemoteRegion> reach(const memory::RemoteKey& key, std::size_t bytes, int& error) override;

  const OwnSegment segment_;
  const std::shared_ptr<Link> link_;
  const Peer peer_;
  const bool exposes_;
  const Origin origin_;
};

}  // namespace wherry::fabric::ofi
