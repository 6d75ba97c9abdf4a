// SPDX-License-Identifier: Apache-2.0
// A network between hosts that a test plays: played_network.cc takes the place of src/fabric/ofi/endpoint.cc and
// service.cc, and hands everything a link asks of libfabric to the PlayedNetwork that lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "fabric/ofi/endpoint.hpp"

namespace wherry::fuzz {

/// One at a time. For one thread.
class PlayedNetwork {
 public:
  using Posted = fabric::ofi::Endpoint::Posted;
  using Handler = fabric::ofi::Endpoint::Handler;
  using RemotePlace = fabric::ofi::RemotePlace;

  PlayedNetwork();
  PlayedNetwork(const PlayedNetwork&) = delete;
  PlayedNetwork& operator=(const PlayedNetwork&) = delete;
  virtual ~PlayedNetwork();
  static PlayedNetwork& current();

  // As those of Endpoint.
  virtual Posted write(std::span<const std::byte> source, const RemotePlace& to, std::optional<std::uint64_t> data) = 0;
  virtual Posted read(std::span<std::byte> into) = 0;
  virtual Posted send(const fabric::ofi::layout::LinkMessage& message) = 0;
  virtual int poll(Handler& handler, int most) = 0;
  [[nodiscard]] virtual bool carries_words() const = 0;
  virtual void on_endpoint_closed() = 0;

  // As those of Domain and Registration.
  /// Returns the key.
  virtual std::uint64_t expose(std::span<std::byte> memory) = 0;
  virtual void on_registration_ended(std::uint64_t key) = 0;

  /// What other threads do while the program's sleeps: called instead of sleeping on a condition variable.
  virtual void run_others() = 0;
};

}  // namespace wherry::fuzz
