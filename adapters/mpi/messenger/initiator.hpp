// SPDX-License-Identifier: Apache-2.0
// One-sided operations (remote.hpp) that this endpoint starts, from the request to the answer.
#pragma once

#include <rdma/fi_errno.h>

#include <cstddef>
#include <cstdint>

#include <wherry/mailbox.hpp>

#include "completion.hpp"
#include "limits.hpp"
#include "link.hpp"
#include "offers.hpp"
#include "outbox.hpp"
#include "pool.hpp"
#include "remote.hpp"
#include "requests.hpp"
#include "target.hpp"
#include "transfers.hpp"

namespace wherry::mpi {

class Initiator final : public PayloadSink, public TransferOwner {
 public:
  Initiator(Mailbox& mailbox, Outbox& outbox, Offers& offers, Transfers& transfers, Limits& limits, Target& self,
            Reporter& reporter)
      : mailbox_(mailbox),
        outbox_(outbox),
        offers_(offers),
        transfers_(transfers),
        limits_(limits),
        self_(self),
        reporter_(reporter) {}

  /// Starts an operation over a connected link. It completes when the target answers.
  void access(const RemoteRequest& request);
  /// Carries out an operation on this endpoint's own memory, at once.
  void access_self(const RemoteRequest& request);

  void on_accessed(Inflow& inflow);
  void on_reply(Inflow& inflow);
  void on_grant(Inflow& inflow);

  void arrived(Inflow& inflow) override { transferred(inflow.subject, 0); }
  void lost(Inflow& inflow) override { transferred(inflow.subject, FI_ECONNRESET); }
  void transferred(std::uint64_t subject, int error) override;
  void lose(const Link& link, int error);
  [[nodiscard]] std::size_t size() const { return accesses_.taken(); }

 private:
  /// An operation that waits for its answer.
  struct Pending : Request {
    Buffers result;       ///< receives what the operation fetches
    std::uint64_t asked;  ///< its share of Link::asked
    bool answered;        ///< the answer has begun

    void reset() {
      reset_request();
      result = Buffers();
      asked = 0;
      answered = false;
    }
  };

  void write_long(const RemoteRequest& request);
  Pending* begin_answer(Inflow& inflow);
  void forget(Pending& access) noexcept;
  void end(Pending& access, int error);

  Mailbox& mailbox_;
  Outbox& outbox_;
  Offers& offers_;
  Transfers& transfers_;
  Limits& limits_;
  Target& self_;
  Reporter& reporter_;
  Pool<Pending> accesses_;
};

}  // namespace wherry::mpi
