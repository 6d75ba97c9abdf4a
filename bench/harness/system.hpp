// SPDX-License-Identifier: Apache-2.0
// What can be measured, and how it is driven: the contract between `wherry bench` and everything it compares.
//
// A System is one way to hand messages over (or one limit of the machine). It runs one sample at a time, so that
// systems can take turns. Most systems are Links: the harness (harness/link.hpp) forks the processes, pins them, writes
// and reads the payload, takes the time and counts CPU seconds, and the system only opens one Link in each process.
// Systems that must start programs of their own (MPI, Java, Rust) implement run() themselves, with the same rules.
//
// A library has a module of its own (bench/systems/libraries/NAME.cc, wherry-peer-NAME.so), which exports
// wherry_bench_systems().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::bench {

enum class Question : std::uint8_t {
  stream,   ///< N senders (1 unless `many`), one receiver: how many messages, how many bytes a second
  latency,  ///< two processes throw one message to and fro; both awake
  asleep,   ///< the same, but each waits before it answers until the other has surely gone to sleep
};

/// One sample to take.
struct Sample {
  Question question = Question::stream;
  std::size_t size = 0;        ///< bytes of one message
  std::uint64_t messages = 0;  ///< of each sender; round trips for latency
  std::uint32_t senders = 1;
  /// Connections to the receiver on which nothing is ever sent; the first sender opens them. For serves_idle() alone.
  std::uint32_t idle = 0;
  /// The producer writes every byte of each message and the consumer sums every byte (harness/touch.hpp). Otherwise
  /// neither looks at the payload ("handover").
  bool touched = false;
  /// Cores: the receiver's, then the sender's. Empty: not pinned. Ignored with more than one sender.
  std::vector<int> cores{};
  /// When a sample that is not done is given up.
  double timeout_seconds = 30;
};

/// How many messages each sender sends before the clock starts, in the same processes, if its link does not ask for
/// more (Link::lap). (Round trips for latency.) Where the payload stays in place it takes some messages, however large
/// they are.
std::uint64_t warm_up_messages(const Sample& sample, bool in_place = true);

/// What one sample came to.
struct Outcome {
  double seconds = 0;      ///< from the start together to the last message received (stream)
  double cpu_seconds = 0;  ///< user and system, of all processes and threads that took part, in that time
  std::uint64_t context_switches = 0;
  std::uint64_t lap = 0;               ///< messages of a lap, if the links have one
  double first_lap_seconds = 0;        ///< from the links' opening to the last of these messages received (stream)
  std::vector<double> latencies_ns{};  ///< half of each round trip, sorted (latency and asleep)
  double mean_latency_ns = 0;          ///< where no more than that is known, and latencies_ns is empty
  /// Proportional set size of all processes at the end, and what the kernel held for TCP half way; 0: not measured.
  std::uint64_t memory_bytes = 0;
};

/// One end of a link, in one process. One thread uses it.
class Link {
 public:
  Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  virtual ~Link() = default;

  /// Memory to write the next message into: a private buffer of the sender's (the same one again, or a few in turn) for
  /// systems that copy, the system's own memory for those that do not. May block until there is one.
  virtual std::span<std::byte> prepare() = 0;
  /// Hands over what prepare() gave. May return before it has arrived.
  virtual void send() = 0;
  /// Returns when everything sent needs nothing more from this side (a window of requests has completed, ...). Called
  /// after the warm-up and at the end of each sample.
  virtual void finish() {}
  /// How many messages go once round the memory that this end sends through (a ring, a pool of buffers). So many are
  /// sent before the clock starts, which leaves no page to be touched for the first time. 0: no such memory, or not
  /// known.
  [[nodiscard]] virtual std::uint64_t lap() const { return 0; }
  /// Whether a link is open without further calls of its peer. All ends wait then until all links are open, and agree
  /// on a lap; others have none.
  [[nodiscard]] virtual bool opens_alone() const { return true; }
  /// How many messages of a stream to a single receiver this end sends until it has learned which way of sending is the
  /// fastest here. So many are sent before the clock starts. 0: it does not learn.
  [[nodiscard]] virtual std::uint64_t learns_within() const { return 0; }
  /// The next whole message, from any sender. Valid until the next call. Blocks, in the system's own best way.
  virtual std::span<const std::byte> receive() = 0;
};

/// How the processes of one sample tell each other where they are: a small page of shared memory.
class ExchangeArea {
 public:
  virtual ~ExchangeArea() = default;
  /// Shows up to 4000 bytes to the others, once. Rank 0 is the receiver, 1..N the senders.
  virtual void post(std::uint32_t rank, std::string_view bytes) = 0;
  /// Waits (with sleeps) for what `rank` posted. Throws when it does not come within 20 s.
  virtual std::string read(std::uint32_t rank) = 0;
};

/// A process's part in a sample.
struct Place {
  const Sample& sample;
  std::uint32_t rank = 0;  ///< 0: the receiver
  ExchangeArea& exchange;
  /// A name that no other sample uses, for sockets and services.
  std::string name;
  /// The address of the receiver's host, which the other processes have to use; empty: all are on one host.
  std::string host{};
  [[nodiscard]] std::string host_or_loopback() const { return host.empty() ? "127.0.0.1" : host; }
  [[nodiscard]] bool receives() const { return rank == 0; }
  /// How many connections the receiver accepts.
  [[nodiscard]] std::uint32_t connections() const { return sample.senders + sample.idle; }
  /// How many of them this process opens that stay idle.
  [[nodiscard]] std::uint32_t idle() const { return rank == 1 ? sample.idle : 0; }
};

/// One process's part in opening and accepting connections (`wherry bench connect`). It keeps what it opened.
class Connector {
 public:
  Connector() = default;
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;
  virtual ~Connector() = default;

  /// Listens and returns where; `name` is unique.
  virtual std::string listen(const std::string& name) = 0;
  /// Blocks until a connection is there.
  virtual void accept() = 0;
  /// From another process.
  virtual void connect(const std::string& where) = 0;
};

class System {
 public:
  System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  virtual ~System() = default;

  /// As in tables and JSON: "wherry", "tcp", "zmq-ipc", "ucx", "limit:split-copy", ...
  [[nodiscard]] virtual std::string name() const = 0;
  /// Of the library as found at run time; empty for what is part of Wherry or the kernel.
  [[nodiscard]] virtual std::string version() const { return {}; }
  /// One line for the report: calls and settings, so that a reader can judge them. Best settings for the system.
  [[nodiscard]] virtual std::string settings() const { return {}; }
  /// False: this system has no way to do that, or not in reasonable time; it is left out of the table.
  [[nodiscard]] virtual bool can(const Sample& sample) const = 0;
  /// The question that alone it answers by default; empty: all.
  [[nodiscard]] virtual std::string question() const { return {}; }
  /// Whether a sample may have idle connections.
  [[nodiscard]] virtual bool serves_idle() const { return false; }
  /// The payload stays where the producer put it: its hand-over figures are not comparable as GB/s.
  [[nodiscard]] virtual bool in_place() const { return false; }
  /// The memory that its messages go through has every page before its links are open: its first lap is like any other.
  [[nodiscard]] virtual bool prefaulted() const { return false; }
  /// False: it works with threads of its own and would suffer from being kept on the one core that the sample names.
  [[nodiscard]] virtual bool pinned() const { return true; }
  /// Called in each process after fork; null: its connections cannot be told apart, or are not measured.
  virtual std::unique_ptr<Connector> connector() { return nullptr; }
  /// Takes one sample. Throws std::exception when it could not; the harness kills what is left over.
  virtual Outcome run(const Sample& sample) = 0;
};

/// A system that the harness drives through links. All processes meet when their links have been warmed up, start
/// together, and meet again before any of them closes its link.
class LinkSystem : public System {
 public:
  /// Called in each process of a sample, after fork: opens this process's end and returns when it is connected. With
  /// Question::latency and asleep both ends send and receive; a process that sends prepares, sends, then receives.
  virtual std::unique_ptr<Link> open(const Place& place) = 0;
  /// How many processes each sample has beside those that take part; their ranks follow.
  [[nodiscard]] virtual std::uint32_t bystanders() const { return 0; }
  /// Called in each of these: returns when those that take part have ended.
  virtual void stand_by(const Place& /*place*/) {}
  Outcome run(const Sample& sample) override;  // harness/link.cc
};

/// What a module exports: extern "C" wherry::bench::Systems* wherry_bench_systems(). Called once; never freed.
using Systems = std::vector<std::unique_ptr<System>>;

}  // namespace wherry::bench
