// SPDX-License-Identifier: Apache-2.0
#include "base/config.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>

#include <wherry/error.hpp>

#include "base/file_paths.hpp"
#include "base/name.hpp"
#include "base/port_range.hpp"

namespace wherry::config {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kGiB = kKiB * kKiB * kKiB;

bool is_log_level(std::string_view value) {
  return value == "error" || value == "warning" || value == "info" || value == "debug";
}

// src/arch decides which of them this machine can run.
bool is_copy_kernel(std::string_view value) {
  constexpr std::array<std::string_view, 5> kNames{"auto", "memcpy", "forward", "backward", "backward-out"};
  return std::ranges::find(kNames, value) != kNames.end();
}

// Checks the form only. The faulty fabric checks the names when it reads its plan.
bool is_fault_plan(std::string_view value) {
  while (!value.empty()) {
    const std::size_t comma = std::min(value.find(','), value.size());
    const std::string_view item = value.substr(0, comma);
    const std::size_t equals = item.find('=');
    if (equals == 0 || equals == std::string_view::npos || equals + 1 == item.size()) return false;
    value.remove_prefix(std::min(comma + 1, value.size()));
  }
  return true;
}

// Prefixes of endpoints that libzmq itself accepts. The adapter interprets them.
bool is_endpoint_list(std::string_view value) {
  while (!value.empty()) {
    const std::size_t comma = std::min(value.find(','), value.size());
    const std::string_view item = value.substr(0, comma);
    if (!item.starts_with("tcp://") && !item.starts_with("ipc://")) return false;
    value.remove_prefix(std::min(comma + 1, value.size()));
  }
  return true;
}

bool is_directory_list(std::string_view value) {
  while (!value.empty()) {
    const std::size_t colon = std::min(value.find(':'), value.size());
    if (value[0] != '/') return false;
    value.remove_prefix(std::min(colon + 1, value.size()));
  }
  return true;
}

bool is_file_path(std::string_view value) { return find_file_path(value) != nullptr; }

bool is_file_path_rule(std::string_view rule) {
  const std::size_t sign = rule.rfind('=');
  return sign != std::string_view::npos && sign > 1 && rule.front() == '*' && is_file_path(rule.substr(sign + 1));
}

bool is_file_path_list(std::string_view value) {
  if (value.size() >= 1024) return false;
  while (!value.empty()) {
    const std::size_t end = std::min(value.find(','), value.size());
    if (!is_file_path_rule(value.substr(0, end))) return false;
    value.remove_prefix(std::min(end + 1, value.size()));
  }
  return true;
}

bool is_machine_name(std::string_view value) { return value.empty() || is_job_name(value); }

// The code that reads the file checks its contents.
bool is_path(std::string_view value) { return value.size() < 4096; }

bool is_port_range(std::string_view value) { return PortRange::parse(value).has_value(); }

bool is_layout(std::string_view value) { return value == "adaptive" || value == "topology" || value == "equal"; }

// One row per option, in the order of Key.
constexpr std::array kOptions{
    Option{Key::node, "node", "WHERRY_NODE", "0", "",
           "the node of this process: 0 is the host, 1 and up are cards; if not set, it is the node of the line of "
           "WHERRY_HOSTS that names this machine, if there is one",
           Kind::number, 0, 65535, "a number from 0 to 65535", nullptr},
    Option{Key::nodes, "nodes", "WHERRY_NODES", "256", "",
           "the number of nodes, including the host; to SCIF programs, nodes from this number on do not exist",
           Kind::number, 1, 65536, "a number from 1 to 65536", nullptr},
    Option{Key::job, "job", "WHERRY_JOB", "default", "",
           "the name of the job: only processes with the same name can connect", Kind::word, 0, 0,
           "1 to 64 letters, digits, dots, underscores or hyphens", is_job_name},
    Option{Key::fabric, "fabric", "WHERRY_FABRIC", "shm", "", "the fabric of addresses that name none", Kind::word, 0,
           0, "lower-case letters, digits, + and -, such as shm", is_fabric_name},
    Option{Key::ring, "ring", "WHERRY_RING", "", "bytes", "capacity of the ring a stream receives into", Kind::bytes,
           4 * kKiB, kGiB, "a number of bytes from 4K to 1G, such as 1M", nullptr, default_ring},
    Option{Key::peer_ring, "peer_ring", "WHERRY_PEER_RING", "", "bytes",
           "the most of a peer's ring that is used; its pages are charged to the process that writes them first",
           Kind::bytes, 4 * kKiB, kGiB, "a number of bytes from 4K to 1G, such as 64K", nullptr, default_peer_ring},
    Option{Key::pool, "pool", "WHERRY_POOL", "256M", "bytes", "memory for all messages of a publisher together",
           Kind::bytes, 4 * kKiB, 512 * kGiB, "a number of bytes from 4K to 512G, such as 256M", nullptr},
    Option{
        Key::spin, "spin", "WHERRY_SPIN", "50", "us",
        "how long a waiting call polls before it sleeps; the default is adapted to measured wake-ups; 0: sleep at once",
        Kind::number, 0, 1'000'000, "a number of microseconds from 0 to 1000000", nullptr},
    Option{Key::connect_timeout, "connect_timeout", "WHERRY_CONNECT_TIMEOUT", "10000", "ms",
           "how long a connect waits for a listener, and for the peer to accept; 0: do not wait for a listener",
           Kind::number, 0, 86'400'000, "a number of milliseconds from 0 to 86400000", nullptr},
    Option{Key::nontemporal, "nontemporal", "WHERRY_NONTEMPORAL", "32M", "bytes",
           "a copy of at least this many bytes bypasses the caches", Kind::bytes, 0,
           std::numeric_limits<std::uint64_t>::max(), "a number of bytes, such as 32M", nullptr},
    Option{Key::copy, "copy", "WHERRY_COPY", "auto", "",
           "how memory shared by two cores is copied: auto chooses by the processor, memcpy is the C library's",
           Kind::word, 0, 0, "auto, memcpy, forward, backward or backward-out", is_copy_kernel},
    Option{Key::split, "split", "WHERRY_SPLIT", "256K", "bytes",
           "blocking transfers of at least this many bytes are split: both sides copy at once, straight between their "
           "buffers; if not set, they are split only while that is measured to be faster than the ring; 0: never",
           Kind::bytes, 0, std::numeric_limits<std::uint64_t>::max(), "a number of bytes, such as 256K, or 0", nullptr},
    Option{Key::statistics, "statistics", "WHERRY_STATISTICS", "on", "", "whether wherry top can see this process",
           Kind::flag, 0, 0, "on or off", nullptr},
    Option{Key::zmq, "zmq", "WHERRY_ZMQ_MAP", "", "",
           "ZeroMQ endpoints whose messages go over Wherry if both ends can, such as tcp://127.0.0.1,ipc://",
           Kind::word, 0, 0,
           "beginnings of tcp:// and ipc:// endpoints separated by commas, such as tcp://127.0.0.1,ipc://",
           is_endpoint_list},
    Option{Key::files, "files", "WHERRY_FILES", "", "",
           "directories whose files are read in place by programs that wherry run starts", Kind::word, 0, 0,
           "absolute paths separated by colons, such as /data:/scratch", is_directory_list},
    Option{Key::file_path, "file_path", "WHERRY_FILE_PATH", "auto", "",
           "how files are read: kernel uses only the kernel's calls; cache copies from the page cache without a system "
           "call; auto does so where that is faster; host transfers the bytes of pread and pwrite between the program "
           "and the host's server, past a mount; auto, if it is set explicitly, does so, too, where that is faster; "
           "card is for files of a later release",
           Kind::word, 0, 0, "kernel, cache, card, host or auto", is_file_path},
    Option{Key::file_paths, "file_paths", "WHERRY_FILE_PATHS", "", "",
           "how files are read, by the end of their names: the first rule that matches applies", Kind::word, 0, 0,
           "rules separated by commas, together below 1024 bytes, such as *.root=kernel,*.idx=cache",
           is_file_path_list},
    Option{Key::files_report, "files_report", "WHERRY_FILES_REPORT", "off", "",
           "whether programs that wherry run --files starts report at exit, in one line, how their files were read and "
           "written",
           Kind::flag, 0, 0, "on or off", nullptr},
    Option{Key::mpi_layout, "mpi_layout", "WHERRY_MPI_LAYOUT", "adaptive", "",
           "how the mailbox of an MPI process is divided among its senders: adaptive (by what they send), topology (by "
           "what the program declares) or equal",
           Kind::word, 0, 0, "adaptive, topology or equal", is_layout},
    Option{Key::mpi_budget, "mpi_budget", "WHERRY_MPI_BUDGET", "1M", "bytes",
           "the budget of the mailbox of an MPI process", Kind::bytes, 4 * kKiB, kGiB,
           "a number of bytes from 4K to 1G, such as 384K", nullptr},
    Option{Key::mpi_eager, "mpi_eager", "WHERRY_MPI_EAGER", "16K", "bytes",
           "the longest message of an MPI process that is sent eagerly, before its receiver asks for it", Kind::bytes,
           64, 16 * kKiB, "a number of bytes from 64 to 16K, such as 4K", nullptr},
    Option{Key::hosts, "hosts", "WHERRY_HOSTS", "", "",
           "a file with the host of each node, one per line from node 0, as in MPI's hostfiles; then, unless "
           "WHERRY_FABRIC "
           "is set, an address that names no fabric is reached over shm on this host and over the network elsewhere",
           Kind::word, 0, 0, "the path of a file", is_path},
    Option{Key::ports, "ports", "WHERRY_PORTS", "47000-47999", "",
           "the TCP ports on which other hosts can connect; a firewall must let them in", Kind::word, 0, 0,
           "a range of ports from 1024 to 65535, such as 47000-47999", is_port_range},
    Option{Key::network_key, "network_key", "WHERRY_KEY", "", "",
           "the file with the key by which processes on different hosts authenticate each other; wherry key makes it",
           Kind::word, 0, 0, "the path of a file", is_path},
    Option{Key::host_timeout, "host_timeout", "WHERRY_HOST_TIMEOUT", "5000", "ms",
           "how long another host, or the network to it, may be silent before its connections end", Kind::number, 1000,
           600'000, "a number of milliseconds from 1000 to 600000", nullptr},
    Option{Key::libfabric, "libfabric", "WHERRY_LIBFABRIC", "libfabric.so.1", "",
           "the libfabric library, used to reach other hosts", Kind::word, 0, 0, "the name or path of a library",
           is_path},
    Option{Key::faults, "faults", "WHERRY_FAULTS", "", "", "the plan of the faulty fabric, such as seed=1,short=10",
           Kind::word, 0, 0, "a list of NAME=VALUE separated by commas, such as seed=1,short=10", is_fault_plan},
    Option{Key::machine, "machine", "WHERRY_MACHINE", "", "",
           "for tests: processes with different values seem to run on different machines", Kind::word, 0, 0,
           "1 to 64 letters, digits, dots, underscores or hyphens", is_machine_name},
    Option{Key::log, "log", "WHERRY_LOG", "warning", "",
           "how much is written to standard error: error, warning, info or debug", Kind::word, 0, 0,
           "error, warning, info or debug", is_log_level},
};

constexpr bool rows_stand_in_the_order_of_their_keys() {
  for (std::size_t i = 0; i < kOptions.size(); ++i) {
    if (static_cast<std::size_t>(kOptions[i].key) != i) return false;
  }
  return kOptions.size() == static_cast<std::size_t>(Key::log) + 1;
}
static_assert(rows_stand_in_the_order_of_their_keys());

std::optional<std::uint64_t> parse_number(std::string_view digits) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// Returns the power of two of a suffix. K, KB and KiB are the same, as in other tools that count memory.
std::optional<unsigned> suffix_shift(std::string_view suffix) {
  if (suffix.empty() || suffix == "B") return 0;
  constexpr std::string_view kLetters = "KMGT";
  const std::size_t index = kLetters.find(static_cast<char>(std::toupper(static_cast<unsigned char>(suffix[0]))));
  const std::string_view rest = suffix.substr(1);
  if (index == std::string_view::npos || !(rest.empty() || rest == "B" || rest == "iB")) return std::nullopt;
  return 10 * (static_cast<unsigned>(index) + 1);
}

std::optional<std::uint64_t> parse_size(std::string_view value) {
  const std::size_t digits = std::min(value.find_first_not_of("0123456789"), value.size());
  const auto number = parse_number(value.substr(0, digits));
  const auto shift = suffix_shift(value.substr(digits));
  if (!number || !shift) return std::nullopt;
  if (*shift > 0 && (*number >> (64 - *shift)) != 0) return std::nullopt;
  return *number << *shift;
}

std::optional<bool> parse_flag(std::string_view value) {
  if (value == "on" || value == "1" || value == "true" || value == "yes") return true;
  if (value == "off" || value == "0" || value == "false" || value == "no") return false;
  return std::nullopt;
}

[[noreturn]] void refuse(const Option& row, const std::string& value, const std::string& allowed) {
  throw Error(EINVAL, "configure", std::string(row.environment) + "=" + value, "use " + allowed);
}

}  // namespace

std::span<const Option> options() { return kOptions; }

const Option& option(Key key) { return kOptions.at(static_cast<std::size_t>(key)); }

std::string default_text(const Option& option) {
  if (option.of_machine == nullptr) return std::string(option.default_value);
  return bytes_text(option.of_machine(this_machine()).bytes);
}

std::string default_reason(const Option& option) {
  return option.of_machine == nullptr ? "" : option.of_machine(this_machine()).from;
}

bool is_set(Key key) {
  const char* value = std::getenv(std::string(option(key).environment).c_str());
  return value != nullptr && *value != '\0';
}

std::string text(Key key) {
  const Option& row = option(key);
  return is_set(key) ? std::getenv(std::string(row.environment).c_str()) : default_text(row);
}

std::string word(Key key) {
  const Option& row = option(key);
  std::string value = text(key);
  if (row.valid_word != nullptr && !row.valid_word(value)) refuse(row, value, std::string(row.allowed));
  return value;
}

std::uint64_t number(Key key, std::uint64_t low, std::uint64_t high) {
  const Option& row = option(key);
  const std::string value = text(key);
  const auto parsed = row.kind == Kind::bytes ? parse_size(value) : parse_number(value);
  if (!parsed || *parsed < row.low || *parsed > row.high) refuse(row, value, std::string(row.allowed));
  if (*parsed < low || *parsed > high) {
    refuse(row, value, "a number from " + std::to_string(low) + " to " + std::to_string(high) + " here");
  }
  return *parsed;
}

bool flag(Key key) {
  const std::string value = text(key);
  const auto parsed = parse_flag(value);
  if (!parsed) refuse(option(key), value, std::string(option(key).allowed));
  return *parsed;
}

void check(Key key) {
  switch (option(key).kind) {
    case Kind::number:
    case Kind::bytes:
      number(key);
      break;
    case Kind::flag:
      flag(key);
      break;
    case Kind::word:
      word(key);
      break;
  }
}

std::uint64_t parse_bytes(std::string_view what, std::string_view value) {
  const auto parsed = parse_size(value);
  if (!parsed) {
    throw Error(EINVAL, "read", std::string(what) + "=" + std::string(value),
                "use a number of bytes with an optional K, M, G or T, such as 1M");
  }
  return *parsed;
}

}  // namespace wherry::config
