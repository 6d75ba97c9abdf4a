// SPDX-License-Identifier: Apache-2.0
// Long payloads at the sending side (rendezvous). A payload is announced; the peer reads it from this process's memory,
// or asks for it. A requested payload is streamed through the section in chunks that fit the room there: one core
// copies into the section while the other copies out of it.
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

  /// Makes an offer, which the peer ends by `done`. The peer may ask for `payload`. Throws std::bad_alloc.
  Offer& make(Link& to, const Buffers& payload);
  static std::uint64_t number_of(const Offer& offer) { return Pool<Offer>::number_of(offer); }
  /// Reports `completion` once the peer has answered.
  static void report_later(Offer& offer, const Completion& completion);
  /// The offer counts as an injection until it ends.
  void count_injection(Offer& offer);
  /// Counts the payload in Link::kept: its completion is reported before the peer has it.
  static void keep(Offer& offer);
  /// Counts the offer in Link::held. A peer that is responsible for too many of these is disconnected.
  static void hold(Offer& offer);
  /// Reports the completion, if one is due, and frees the offer.
  void end(Offer& offer, int error);
  /// Frees the offer without a report.
  void withdraw(Offer& offer);

  void on_want(Inflow& inflow);
  void on_done(Inflow& inflow);

  [[nodiscard]] bool is_idle() const { return streams_.empty(); }
  /// Sends chunks of the payloads that peers have asked for. Returns true if one has left.
  bool stream() noexcept;
  void lose(Link& link, int error);
  /// Copies payloads that lie in this region: no offer refers to it afterwards. Throws std::bad_alloc.
  void revoke(const Region& region);
  [[nodiscard]] std::size_t size() const { return offers_.taken(); }

 private:
  bool stream(Offer& offer) noexcept;

  Outbox& outbox_;
  Limits& limits_;
  Reporter& reporter_;
  Pool<Offer> offers_;
  List<Offer> streams_;  ///< offers with chunks still to be sent
};

}  // namespace wherry::mpi
