// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <wherry/stream.hpp>

#include "base/unique_fd.hpp"
#include "file/server/server_session.hpp"
#include "file/wire/fault_point.hpp"

namespace wherry::file {

struct ServerOptions {
  std::string root{};           ///< the directory to serve
  std::string listen{};         ///< wherry://NODE:PORT
  std::size_t threads = 0;      ///< serving threads; 0: one per core of this process, at least two
  bool read_only = false;       ///< every change fails with EROFS
  std::size_t connections = 0;  ///< limit; 0: from the limit of open files. Further clients wait for an end
  bool lends = true;            ///< clients under the same kernel may take its descriptors of their files
  bool delegates = true;        ///< files are delegated (Delegations)
  std::chrono::milliseconds recall_timeout = Terms().recall_timeout;
  std::chrono::milliseconds delegation_margin = Terms().delegation_margin;  ///< for tests
  AtFaultPoint at{};                                                        ///< for tests
};

/// The host's file server: serves the files below one directory to any number of clients. Each thread serves many
/// connections and sleeps while there are no requests. A request that waits for the disk delays the other connections
/// of its thread.
class Server {
 public:
  /// Listens and starts the threads. Throws Error: as Tree and `listen` do, EMFILE, EAGAIN (no more threads).
  explicit Server(ServerOptions options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  /// Ends all connections. Requests in progress are completed, but their clients get no answer.
  ~Server();

  /// Accepts clients until `stop`. For one thread only.
  void run();
  /// Makes `run` return. Thread-safe and async-signal-safe.
  void stop() noexcept;

  /// The address it listens on, with `*` resolved.
  [[nodiscard]] std::string address() const { return listener_.local().to_string(); }

 private:
  class Worker;

  bool wait();
  void accept_waiting();
  [[nodiscard]] std::size_t connections() const;

  Service service_;
  std::size_t most_connections_;
  UniqueFd stop_;
  UniqueFd left_;  ///< readable if a connection has ended since the last read
  Listener listener_;
  std::string last_accept_error_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace wherry::file
