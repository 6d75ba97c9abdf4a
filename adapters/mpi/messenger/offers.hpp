// SPDX-License-Identifier: Apache-2.0
// Long payloads, at the side that has them (rendezvous): they are announced, and the peer reads them out of this
// process's memory or asks for them. What it asks for is streamed through its section, in chunks that fit the room
// there: one core copies into the section while the other copies out of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "completion.hpp"
#include "limits.hpp"
#include "link.hpp"
#include "list.hpp"
#include "outbox.hpp"
#include "pool.hpp"
#include "requests.hpp"

namespace wherry::mpi {

class Offers {
 public:
  Offers(Outbox& outbox, Limits& limits, Reporter& reporter) : outbox_(outbox), limits_(limits), reporter_(reporter) {}

  /// What the peer ends by `done`. `payload` is what it may ask for. Throws std::bad_alloc.
  Offer& make(Link& to, const Buffers& payload);
  static std::uint64_t number_of(const Offer& offer) { return Pool<Offer>::number_of(offer); }
  /// Reports `completion` once the peer has answered.
  static void report_later(Offer& offer, const Completion& completion);
  /// The offer counts as an injection until it ends.
  void count_injection(Offer& offer);
  /// The payload counts as kept for the peer, whose completion is reported before it has it.
  static void keep(Offer& offer);
  /// The offer counts as held for the peer, which is closed if it makes too many of them and ends none.
  static void hold(Offer& offer);
  /// Reports, and forgets it.
  void end(Offer& offer, int error);
  /// Forgets it, as if it had never been made.
  void withdraw(Offer& offer);

  void on_want(Inflow& inflow);
  void on_done(Inflow& inflow);

  [[nodiscard]] bool is_idle() const { return streams_.empty(); }
  /// Sends chunks of what is asked for. True if any has left.
  bool stream() noexcept;
  void lose(Link& link, int error);
  /// No offer names this region after that.
  void revoke(const Region& region);
  [[nodiscard]] std::size_t size() const { return offers_.taken(); }

 private:
  bool stream(Offer& offer) noexcept;

  Outbox& outbox_;
  Limits& limits_;
  Reporter& reporter_;
  Pool<Offer> offers_;
  List<Offer> streams_;  ///< of which chunks are still to be sent
};

}  // namespace wherry::mpi
