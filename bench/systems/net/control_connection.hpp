// SPDX-License-Identifier: Apache-2.0
// The TCP connection between the two programs of `wherry bench net --listen` and `--connect`.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/unique_fd.hpp"

namespace wherry::bench::net {

/// Carries frames (layout/control_frame.hpp). A program and the process of a sample that it forks use the same
/// connection in turns; it reads no byte beyond the frame it returns. All calls throw std::runtime_error if the other
/// host is gone, does not answer, or sends what is no frame.
class ControlConnection {
 public:
  /// Connects to a program that listens.
  ControlConnection(const std::string& host, std::uint16_t port);
  /// `socket` is connected.
  explicit ControlConnection(UniqueFd socket);

  /// Exchanges versions.
  void greet() const;
  void send(const nlohmann::json& frame) const;
  /// Waits for the next frame. With no limit of time it also waits for a peer that is busy elsewhere.
  [[nodiscard]] nlohmann::json receive(std::chrono::seconds limit = std::chrono::seconds::max()) const;

  /// Called in the process of a rank: ends it as soon as the other host is gone. Otherwise it would wait for
  /// the link of the other rank until the sample times out.
  void end_process_with_it() const;

  /// IPv4 addresses of the two ends, such as 10.0.0.1.
  [[nodiscard]] const std::string& own_address() const { return own_; }
  [[nodiscard]] const std::string& peer_address() const { return peer_; }

 private:
  void read(void* to, std::size_t bytes, std::chrono::seconds limit) const;

  UniqueFd socket_;
  std::string own_;
  std::string peer_;
};

/// Listens for a driver on all of this host's IPv4 addresses.
class ControlListener {
 public:
  /// Throws std::runtime_error, which says what to do, if the port is in use.
  explicit ControlListener(std::uint16_t port);
  [[nodiscard]] ControlConnection accept() const;

 private:
  UniqueFd socket_;
};

}  // namespace wherry::bench::net
