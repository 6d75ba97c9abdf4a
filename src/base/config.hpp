// SPDX-License-Identifier: Apache-2.0
// The configuration table. Every option is one row of kOptions in config.cc; `wherry config` prints them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/ring_default.hpp"

namespace wherry::config {

/// One key per row of the table, in the table's order.
enum class Key : std::uint8_t {
  node,
  nodes,
  job,
  fabric,
  ring,
  peer_ring,
  pool,
  spin,
  connect_timeout,
  nontemporal,
  copy,
  split,
  statistics,
  zmq,
  files,
  file_path,
  file_paths,
  files_report,
  mpi_layout,
  mpi_budget,
  mpi_eager,
  hosts,
  ports,
  network_key,
  host_timeout,
  libfabric,
  faults,
  machine,
  log,
};

/// The type of an option's value.
enum class Kind : std::uint8_t { number, bytes, flag, word };

struct Option {
  Key key;
  std::string_view name;         ///< as `wherry config` prints it
  std::string_view environment;  ///< the variable that sets it
  std::string_view
      default_value;      ///< as written in the variable; "": an empty word, or derived from the machine (of_machine)
  std::string_view unit;  ///< "bytes", "us", "ms", or "" for words and plain numbers
  std::string_view help;
  Kind kind;
  std::uint64_t low;                                ///< the smallest number allowed, in the unit; 0 for words and flags
  std::uint64_t high;                               ///< the largest number allowed, in the unit; 0 for words and flags
  std::string_view allowed;                         ///< describes valid values, as a phrase that follows "use"
  bool (*valid_word)(std::string_view);             ///< validates a word; null for the other kinds
  Derived (*of_machine)(const Machine&) = nullptr;  ///< computes a default that depends on the machine; else null
};

/// Returns the default on this machine, as written in the variable.
std::string default_text(const Option& option);
/// Returns why this machine has that default; empty if it is the same on all machines.
std::string default_reason(const Option& option);

/// Returns the whole table.
std::span<const Option> options();
const Option& option(Key key);

/// Whether the option's environment variable is set and not empty.
bool is_set(Key key);

/// Returns the effective value as text, unchecked: the environment variable if it is set and not empty, else the
/// default.
std::string text(Key key);

/// Returns the effective value of a word, checked. Throws Error(EINVAL) as `number` does.
std::string word(Key key);

/// Returns the effective value as a number in the option's unit. Bytes accept K, M, G, T (powers of 1024, also KiB
/// ...). Throws Error(EINVAL) that names the variable, its value and what is allowed. `low` and `high` narrow the
/// table's limits.
std::uint64_t number(Key key, std::uint64_t low = 0, std::uint64_t high = UINT64_MAX);

/// Returns a flag: "on"/"off", "1"/"0", "true"/"false", "yes"/"no". Throws Error(EINVAL) for other texts.
bool flag(Key key);

/// Throws Error(EINVAL) if the effective value is invalid, for an option of any kind.
void check(Key key);

/// Parses a number with an optional K/M/G/T[iB] suffix. Throws Error(EINVAL) that quotes `what` and the text.
std::uint64_t parse_bytes(std::string_view what, std::string_view value);

}  // namespace wherry::config
