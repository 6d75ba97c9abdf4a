// SPDX-License-Identifier: Apache-2.0
// The one configuration table. Every option is one row of kOptions in config.cc; `wherry config` prints them.
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

/// What kind of text the variable holds.
enum class Kind : std::uint8_t { number, bytes, flag, word };

struct Option {
  Key key;
  std::string_view name;           ///< as `wherry config` prints it
  std::string_view environment;    ///< the variable that sets it
  std::string_view default_value;  ///< as it would be written in the variable; "": a word, or of the machine
  std::string_view unit;           ///< "bytes", "us", "ms", or "" for words and plain numbers
  std::string_view help;
  Kind kind;
  std::uint64_t low;                                ///< the smallest number allowed, in the unit; 0 for words and flags
  std::uint64_t high;                               ///< the largest number allowed, in the unit; 0 for words and flags
  std::string_view allowed;                         ///< what a valid value is, as a phrase that follows "use"
  bool (*valid_word)(std::string_view);             ///< judges a word; null for the other kinds
  Derived (*of_machine)(const Machine&) = nullptr;  ///< the default, where each machine has its own
};

/// The default here, as it would be written in the variable.
std::string default_text(const Option& option);
/// Why the default is that on this machine; empty where it is the same on all.
std::string default_reason(const Option& option);

/// The whole table.
std::span<const Option> options();
const Option& option(Key key);

/// Whether the environment says it.
bool is_set(Key key);

/// The value in force, as text, unchecked: the environment variable if it is set and not empty, else the default.
std::string text(Key key);

/// The value in force of an option that is a word, checked. Throws Error(EINVAL) as `number` does.
std::string word(Key key);

/// The value in force as a number in the option's unit. Bytes accept K, M, G (powers of 1024, also KiB ...).
/// Throws Error(EINVAL) naming the variable, its value and what is allowed; `low` and `high` narrow the table's limits.
std::uint64_t number(Key key, std::uint64_t low = 0, std::uint64_t high = UINT64_MAX);

/// "on"/"off", "1"/"0", "true"/"false", "yes"/"no". Throws Error(EINVAL) otherwise.
bool flag(Key key);

/// Throws Error(EINVAL) if the value in force is not a valid one, whatever the option's kind.
void check(Key key);

/// A number with an optional K/M/G[iB] suffix; throws Error(EINVAL) that quotes `what` and the text.
std::uint64_t parse_bytes(std::string_view what, std::string_view value);

}  // namespace wherry::config
