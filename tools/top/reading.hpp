// SPDX-License-Identifier: Apache-2.0
// The values that `wherry top` read from the processes at one moment. The processes state them; only their limits are
// checked.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include <wherry/address.hpp>

#include "layout/statistics_page.hpp"

namespace wherry::tools {

struct EndpointReading {
  std::uint32_t record = 0;
  std::uint64_t generation = 0;  ///< with the record it identifies the endpoint across readings
  layout::EndpointKind kind = layout::EndpointKind::stream;
  Address local;
  Address peer;
  std::uint32_t peer_pid = 0;          ///< 0: none
  std::string fabric;                  ///< printable
  std::string peer_host{};             ///< printable; empty: this machine
  std::uint64_t opened_ns = 0;         ///< CLOCK_MONOTONIC
  std::uint64_t send_capacity = 0;     ///< bytes
  std::uint64_t receive_capacity = 0;  ///< bytes
  std::uint64_t bytes_sent = 0, sends = 0, send_sleeps = 0, send_fill = 0, data_wakes = 0;
  std::uint64_t bytes_received = 0, receives = 0, receive_sleeps = 0, receive_fill = 0, space_wakes = 0;
  bool asleep_sending = false, asleep_receiving = false;
};

/// A class of transfers of a mount's files, for which the process chooses between two ways.
struct TransfersReading {
  struct Way {
    std::uint64_t calls = 0, bytes = 0, explored = 0;
    std::uint64_t estimate_ns = 0;  ///< for the smallest transfer of the class; 0: not measured
  };
  layout::TransferTraits traits;
  Way host;    ///< directly to the host's server
  Way kernel;  ///< through the mount
};

struct ProcessReading {
  pid_t pid = 0;
  std::string program;  ///< printable
  std::string job;      ///< printable; empty: unknown
  std::uint32_t node = 0;
  std::uint64_t started_ns = 0;  ///< CLOCK_MONOTONIC; with the pid it identifies the process across readings
  std::uint64_t endpoints_not_shown = 0;
  std::vector<EndpointReading> endpoints;
  std::vector<TransfersReading> transfers;  ///< only classes that had transfers
};

struct Reading {
  std::uint64_t at_ns = 0;  ///< CLOCK_MONOTONIC
  std::vector<ProcessReading> processes;
};

}  // namespace wherry::tools
