// SPDX-License-Identifier: Apache-2.0
// Listener and Connecting between hosts. Each makes a rendezvous and then a link.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/fork_generation.hpp"
#include "fabric/ofi/connection.hpp"
#include "fabric/ofi/rendezvous.hpp"
#include "fabric/ofi/service.hpp"
#include "fabric/rendezvous.hpp"

namespace wherry::fabric::ofi {

class OfiListener final : public Listener {
 public:
  /// Throws the errors of RendezvousListener and Service.
  OfiListener(const Settings& settings, const Address& address);
  ~OfiListener() override;

  std::unique_ptr<Connection> try_accept(const Offer& offer) override;
  [[nodiscard]] int descriptor() const override;
  [[nodiscard]] const Address& local() const override { return local_; }

 private:
  class Port;  // what the service drives

  std::unique_ptr<Connection> meet(const Offer& offer);

  const Settings settings_;
  Service& service_;
  std::shared_ptr<Port> port_;
  Address local_;
  const Origin origin_;
};

class OfiConnecting final : public Connecting {
 public:
  /// Starts to search for the listener; try_finish throws a refusal if there is none. Throws the errors of
  /// RendezvousConnector's constructor and of Service.
  OfiConnecting(const Settings& settings, const std::string& host, const Address& address, const Offer& offer);
  ~OfiConnecting() override;

  std::unique_ptr<Connection> try_finish() override;
  [[nodiscard]] int descriptor() const override;
  [[nodiscard]] bool waits_for_listener() const override;
  [[nodiscard]] std::string obstacle() const override;

 private:
  class Attempt;  // what the service drives

  const Address address_;
  const std::string host_;
  const bool exposes_;
  std::optional<OwnSegment> segment_;
  std::shared_ptr<Attempt> attempt_;
  Service* service_ = nullptr;
  bool finished_ = false;
  const Origin origin_;
};

}  // namespace wherry::fabric::ofi
