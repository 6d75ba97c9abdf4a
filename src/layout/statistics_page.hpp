// SPDX-License-Identifier: Apache-2.0
// The statistics of one process: a sealed memfd named kStatisticsMemfdName that any process of the same user may map
// read-only through /proc/PID/fd. Written by that process only; a reader must treat every value as a claim.
//
//   0        256                   512                   768       256 KiB
//   +--------+---------------------+---------------------+-- ... --+----------------------+
//   | header | record 0            | record 1            |         | classes of transfers |
//   +--------+---------------------+---------------------+-- ... --+----------------------+
//              within a record: 0 owner, 64 sending, 128 receiving, 192 state
//
// Seqlock: a record is in use if its `generation` is odd, and free if it is even. A reader reads `generation` before
// and after the rest, and discards the values if it changed. Pages of unused records take no memory. Nor do the pages
// of the transfer classes in a process that has chosen no path for a file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "layout/transfer_class.hpp"

namespace wherry::layout {

inline constexpr char kStatisticsMemfdName[] = "wherry.statistics";
inline constexpr std::uint32_t kStatisticsVersion = 2;
inline constexpr std::uint32_t kStatisticsRecords =
    1023;  ///< most endpoints shown per process; further ones work but are not shown
inline constexpr std::uint16_t kNoPort = 0;

/// What a record describes.
enum class EndpointKind : std::uint32_t { stream = 1, listener = 2 };

struct alignas(64) StatisticsHeader {
  std::uint32_t version;     // W: owner, once, before the memfd is sealed
  std::uint32_t records;     // W: owner, once
  std::uint64_t pid;         // W: owner, once (a reader trusts the /proc entry instead)
  std::uint64_t started_ns;  // W: owner, once; CLOCK_MONOTONIC
  std::uint32_t node;        // W: owner, once
  std::uint32_t reserved0;
  Counter endpoints_not_shown;  // W: owner; endpoints open beyond the records
  char program[24];             // W: owner, once; NUL-terminated
  char job[128];                // W: owner, once; NUL-terminated
};
static_assert(std::is_standard_layout_v<StatisticsHeader>);
static_assert(sizeof(StatisticsHeader) == 192 && alignof(StatisticsHeader) == 64);
static_assert(offsetof(StatisticsHeader, version) == 0 && offsetof(StatisticsHeader, records) == 4);
static_assert(offsetof(StatisticsHeader, pid) == 8 && offsetof(StatisticsHeader, started_ns) == 16);
static_assert(offsetof(StatisticsHeader, node) == 24 && offsetof(StatisticsHeader, endpoints_not_shown) == 32);
static_assert(offsetof(StatisticsHeader, program) == 40 && offsetof(StatisticsHeader, job) == 64);

struct alignas(256) StatisticsRecord {
  // Line 0: the owner. W: owner while the generation is even.
  Counter generation;  ///< odd: in use
  std::uint32_t kind;  ///< EndpointKind
  std::uint32_t peer_pid;
  std::uint16_t local_node, local_port, peer_node, peer_port;  ///< kNoPort: none
  std::uint64_t send_capacity;                                 ///< bytes of the ring this side sends into
  std::uint64_t receive_capacity;                              ///< bytes of the ring this side receives into
  std::uint64_t opened_ns;                                     ///< CLOCK_MONOTONIC
  char fabric[16];                                             ///< NUL-terminated
  // Line 1: W: the sending thread.
  alignas(64) Counter bytes_sent;
  Counter sends;
  Counter send_sleeps;
  Counter send_fill;         ///< bytes in flight in the peer's ring, as last seen by the sender
  Counter data_wakes;        ///< times the peer was woken because of new bytes
  Counter bytes_sent_split;  ///< part of bytes_sent: bytes of split transfers, past the ring
  std::uint64_t reserved1[2];
  // Line 2: W: the receiving thread (a listener counts accepted streams in `receives`).
  alignas(64) Counter bytes_received;
  Counter receives;
  Counter receive_sleeps;
  Counter receive_fill;          ///< bytes waiting in the own ring, as last seen by the receiver
  Counter space_wakes;           ///< times the peer was woken because of new space
  Counter bytes_received_split;  ///< part of bytes_received: bytes of split transfers, past the ring
  std::uint64_t reserved2[2];
  // Line 3: state. W: owner, any thread.
  alignas(64) Counter asleep_sending;  ///< 1 while the sending thread sleeps
  Counter asleep_receiving;            ///< 1 while the receiving thread sleeps
  char peer_host[48];                  ///< NUL-terminated; empty: this machine. W: owner while the generation is even
};
static_assert(std::is_standard_layout_v<StatisticsRecord>);
static_assert(sizeof(StatisticsRecord) == 256 && alignof(StatisticsRecord) == 256);
static_assert(offsetof(StatisticsRecord, generation) == 0 && offsetof(StatisticsRecord, kind) == 8);
static_assert(offsetof(StatisticsRecord, peer_pid) == 12 && offsetof(StatisticsRecord, local_node) == 16);
static_assert(offsetof(StatisticsRecord, local_port) == 18 && offsetof(StatisticsRecord, peer_node) == 20);
static_assert(offsetof(StatisticsRecord, peer_port) == 22 && offsetof(StatisticsRecord, send_capacity) == 24);
static_assert(offsetof(StatisticsRecord, receive_capacity) == 32 && offsetof(StatisticsRecord, opened_ns) == 40);
static_assert(offsetof(StatisticsRecord, fabric) == 48);
static_assert(offsetof(StatisticsRecord, bytes_sent) == 64 && offsetof(StatisticsRecord, sends) == 72);
static_assert(offsetof(StatisticsRecord, send_sleeps) == 80 && offsetof(StatisticsRecord, send_fill) == 88);
static_assert(offsetof(StatisticsRecord, data_wakes) == 96 && offsetof(StatisticsRecord, bytes_sent_split) == 104,
              "the sending thread's line ends here");
static_assert(offsetof(StatisticsRecord, bytes_received) == 128 && offsetof(StatisticsRecord, receives) == 136);
static_assert(offsetof(StatisticsRecord, receive_sleeps) == 144 && offsetof(StatisticsRecord, receive_fill) == 152);
static_assert(offsetof(StatisticsRecord, space_wakes) == 160 && offsetof(StatisticsRecord, bytes_received_split) == 168,
              "the receiving thread's line ends here");
static_assert(offsetof(StatisticsRecord, asleep_sending) == 192 && offsetof(StatisticsRecord, asleep_receiving) == 200);
static_assert(offsetof(StatisticsRecord, peer_host) == 208);

inline constexpr std::size_t kStatisticsRecordsOffset = 256;  ///< the header is padded to a record's alignment
static_assert(sizeof(StatisticsHeader) <= kStatisticsRecordsOffset);
inline constexpr std::size_t kTransferClassesOffset =
    kStatisticsRecordsOffset + kStatisticsRecords * sizeof(StatisticsRecord);
static_assert(kTransferClassesOffset % 4096 == 0, "its pages are its own");
inline constexpr std::size_t kStatisticsBytes = kTransferClassesOffset + kTransferClasses * sizeof(TransferClass);

}  // namespace wherry::layout
