// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "file/direct/direct_host.hpp"
#include "layout/host_ticket.hpp"

namespace wherry::file {

/// A process's files that it has opened by tickets, and its connections to their servers. Up to kMostConnections to one
/// server, since transfers on one connection go one after the other; they stay for later files.
///
/// Threads: any. Fork: stays the parent's.
class DirectFiles {
 public:
  /// One of these files, and the connection that it keeps.
  struct File {
    std::shared_ptr<DirectHost> host;
    std::unique_ptr<DirectHost::File> file;
  };
  static constexpr std::size_t kMostConnections = 4;

  /// @param goes_on  as of StreamConnection::set_patience; asked by the thread whose call waits
  explicit DirectFiles(std::function<bool()> goes_on) : goes_on_(std::move(goes_on)) {}
  DirectFiles(const DirectFiles&) = delete;
  DirectFiles& operator=(const DirectFiles&) = delete;
  ~DirectFiles() = default;

  /// Has a connection for the next file that is opened there. Returns 0, or EINVAL as `open`. Throws Error.
  int connect(const layout::HostTicket& ticket);
  /// Connects if need be. Returns 0, or an errno value as DirectHost::open; EINVAL: a ticket of another version.
  /// Throws Error as DirectHost does.
  int open(const layout::HostTicket& ticket, std::unique_ptr<File>& file);
  /// As DirectHost::forget_after_fork.
  void forget_after_fork();

 private:
  struct Connection {
    std::string address;
    std::shared_ptr<DirectHost> host;
  };
  std::shared_ptr<DirectHost> connection(const std::string& address);

  std::function<bool()> goes_on_;
  std::mutex mutex_;
  std::list<Connection> connections_;
};

}  // namespace wherry::file
