// SPDX-License-Identifier: Apache-2.0
// One-sided operations of peers on this process's memory (remote.hpp). Memory is touched only after Regions has allowed
// the access.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "completion.hpp"
#include "link.hpp"
#include "link_table.hpp"
#include "offers.hpp"
#include "outbox.hpp"
#include "pool.hpp"
#include "regions.hpp"
#include "remote.hpp"
#include "transfers.hpp"

namespace wherry::mpi {

class Target final : public PayloadSink, public TransferOwner {
 public:
  Target(LinkTable& links, Outbox& outbox, Offers& offers, Transfers& transfers, Reporter& reporter)
      : links_(links), outbox_(outbox), offers_(offers), transfers_(transfers), reporter_(reporter) {}

  void serve(const Regions& regions, Access access) {
    regions_ = &regions;
    served_ = access;
  }
  /// To be called before the region ends: afterwards no peer's operation touches its memory. Throws std::bad_alloc.
  void revoke(const Region& region);
  /// Carries out an operation of this endpoint on its own memory, at once. Returns 0 or a positive FI_E value.
  int carry_out(const RemoteRequest& request, const PacketHead& head);

  void on_write(Inflow& inflow);
  void on_announce_write(Inflow& inflow);
  void on_read(Inflow& inflow);
  void on_atomic(Inflow& inflow);

  void arrived(Inflow& inflow) override;
  void lost(Inflow& inflow) override;
  void transferred(std::uint64_t subject, int error) override;
  [[nodiscard]] std::size_t size() const { return accesses_.taken(); }

 private:
  /// A peer's write or atomic whose payload is on its way.
  struct Arriving : Pooled {
    Link* from;
    PacketHead packet;
    int refused;                                     ///< errno value if the payload is to be dropped, else 0
    std::array<Region*, kMostRemoteRanges> regions;  ///< the regions that it goes to
    std::vector<std::byte> operands;                 ///< of an atomic

    void reset() {
      refused = 0;
      regions.fill(nullptr);
    }
  };

  [[nodiscard]] Regions::Found find(std::span<const RemoteRange> ranges, const PacketHead& packet) const;
  bool find(Inflow& inflow, Regions::Found& found) const;
  Arriving& begin(const Inflow& inflow, const Regions::Found& found);
  void finish_write(Arriving& access, int error);
  void finish_atomic(Inflow& inflow, Arriving& access);
  void forget(Arriving& access);
  void note_access(const PacketHead& packet, const Link* from, const std::array<Region*, kMostRemoteRanges>& regions);
  void grant(const Inflow& inflow, const Regions::Found& found);
  void refuse(const Inflow& inflow, int error) {
    outbox_.control(*inflow.link, Operation::accessed, inflow.packet.request, static_cast<std::uint64_t>(error));
  }

  LinkTable& links_;
  Outbox& outbox_;
  Offers& offers_;
  Transfers& transfers_;
  Reporter& reporter_;
  const Regions* regions_ = nullptr;
  Access served_;
  Pool<Arriving> accesses_;
};

}  // namespace wherry::mpi
