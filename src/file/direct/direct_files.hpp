// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "file/direct/direct_host.hpp"
#include "layout/host_ticket.hpp"

namespace wherry::file {

/// The files that a process has opened by tickets, and its connections to their servers. Up to kMostConnections per
/// server, since transfers on one connection are serialized. The connections stay open for later files.
///
/// Thread-safe. After a fork they belong to the parent.
class DirectFiles {
 public:
  /// A file, and the connection that it uses.
  struct File {
    std::shared_ptr<DirectHost> host;
    std::unique_ptr<DirectHost::File> file;
  };
  static constexpr std::size_t kMostConnections = 4;

  explicit DirectFiles(DirectHost::Caller caller) : caller_(std::move(caller)) {}
  DirectFiles(const DirectFiles&) = delete;
  DirectFiles& operator=(const DirectFiles&) = delete;
  ~DirectFiles() = default;

  /// Makes a connection in advance, for the next file opened there. Returns 0, or EINVAL as `open`. Throws Error.
  int connect(const layout::HostTicket& ticket);
  /// Opens a file, and connects if necessary. Returns 0, or an errno value as DirectHost::open; EINVAL: a ticket of
  /// another version. Throws Error as DirectHost does.
  int open(const layout::HostTicket& ticket, std::unique_ptr<File>& file);
  /// As DirectHost::forget_after_fork.
  void forget_after_fork();

 private:
  struct Connection {
    std::string address;
    std::shared_ptr<DirectHost> host;
  };
  std::shared_ptr<DirectHost> connection(const std::string& address);

  DirectHost::Caller caller_;
  std::mutex mutex_;
  std::list<Connection> connections_;
};

}  // namespace wherry::file
