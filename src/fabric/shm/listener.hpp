// SPDX-License-Identifier: Apache-2.0
// The listening end of a rendezvous. Every process of the machine can connect to its name. So the work of one call for
// other users is bounded, as are the resources for connectors of this user that send nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/fork_generation.hpp"
#include "base/limited_log.hpp"
#include "base/unique_fd.hpp"
#include "fabric/rendezvous.hpp"
#include "fabric/shm/connection.hpp"
#include "fabric/shm/pending.hpp"
#include "fabric/shm/socket_names.hpp"
#include "fabric/shm/stranger_budget.hpp"

namespace wherry::fabric::shm {

class ShmListener final : public Listener {
 public:
  /// Throws Error: EADDRINUSE, EADDRNOTAVAIL, EACCES, EMFILE, ENOMEM.
  explicit ShmListener(const Address& wanted);

  std::unique_ptr<Connection> try_accept(const Offer& offer) override;
  [[nodiscard]] int descriptor() const override { return pending_.descriptor(); }
  [[nodiscard]] const Address& local() const override { return local_; }

 private:
  bool bind_port(std::uint16_t port);
  void bind_any_port();
  [[nodiscard]] std::string advice_on_taken_port() const;
  int take_connectors(const Offer& offer);
  void adapt_queue();
  void refuse_connectors();
  std::unique_ptr<Connection> serve(const Offer& offer, int& obstacle);
  void heard_of_companion(Pending& companion, int error, const Offer& offer);
  [[nodiscard]] static bool waits(Pending& ready, int error, const Offer& offer);
  /// The sockets of a connector whose request is being answered.
  struct Taken {
    UniqueFd socket;
    UniqueFd companion;
    Peer peer;
  };
  Taken take(Pending& ready, std::uint64_t companion);
  std::unique_ptr<Connection> answer(Pending& ready, Packet packet, const Offer& offer, int& obstacle);
  std::unique_ptr<Connection> connect(Taken taken, const layout::ShmHello& request, OwnSide own, PeersSide peers,
                                      const Offer& offer);
  void drop(const Peer& peer, int error) const;
  void refuse(const Peer& peer, const std::string& reason);

  Address local_;
  UniqueFd socket_;
  PendingConnectors pending_;
  const Origin origin_;
  StrangerBudget strangers_{StrangerBudget::Clock::now()};
  int queue_length_ = SOMAXCONN;  ///< as last passed to listen()
  log::LimitedLog warnings_{"refused connectors"};
  UniqueFd spare_;  ///< closed for a moment to accept and refuse a connector when no other descriptor is free
};

}  // namespace wherry::fabric::shm
