// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "file/client/host.hpp"

namespace wherry::file::mount {

/// Connections to one server. Calls of one connection go one after the other, so that each call takes the least busy
/// one: a slow call holds up only the files that are open on its connection.
///
/// Threads: any. Blocks as Host does.
class Hosts {
 private:
  struct Connection {
    explicit Connection(HostOptions options) : host(std::move(options)) {}
    Host host;
    std::atomic<std::uint32_t> calls{0};  ///< under way
    std::atomic<std::uint32_t> files{0};  ///< open
  };

 public:
  /// Counts as a call of a connection while it lives.
  class Use {
   public:
    explicit Use(Connection& connection) : connection_(&connection) {
      connection.calls.fetch_add(1, std::memory_order_relaxed);
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() { connection_->calls.fetch_sub(1, std::memory_order_relaxed); }
    Host* operator->() const { return &connection_->host; }

   private:
    friend class Hosts;
    Connection* connection_;
  };

  /// A handle of the server's, closed at the end.
  class File {
   public:
    File(Connection& connection, Host::Handle handle) : connection_(connection), handle_(handle) {
      connection.files.fetch_add(1, std::memory_order_relaxed);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File();
    [[nodiscard]] Use use() const { return Use(connection_); }
    [[nodiscard]] Host::Handle handle() const { return handle_; }
    /// Whether both are of one connection: only then does a request name both.
    [[nodiscard]] bool is_beside(const File& other) const { return &connection_ == &other.connection_; }
    /// As Host::open_again, on the same connection. Returns 0 or an errno value.
    int open_again(std::uint32_t flags, std::unique_ptr<File>& file, layout::FileStatus& status) const;
    /// As HostLocks::open, on the same connection. Null, and an errno value, where that fails.
    [[nodiscard]] std::unique_ptr<File> open_locks(std::uint32_t flags, std::shared_ptr<HeldLocks> held,
                                                   int& error) const;

   private:
    friend class Hosts;
    Connection& connection_;
    Host::Handle handle_;
  };

  /// Connects `count` times. Throws Error where not even one connection is made.
  Hosts(const HostOptions& options, std::size_t count);

  /// Of the server.
  [[nodiscard]] const std::string& address() const { return address_; }

  /// For a call that takes a path.
  [[nodiscard]] Use any();
  /// As Host::open. The file stays on one connection.
  /// @param beside  a file whose connection it is to be; null: any
  Host::Opened open(std::string_view name, std::uint32_t flags, std::uint32_t mode, std::unique_ptr<File>& file,
                    const File* beside = nullptr);
  /// As Host::resume.
  std::unique_ptr<File> resume(std::string_view name, std::uint32_t flags, const layout::FileStatus& same, bool lost,
                               UniqueFd kept, const std::optional<HostRun>& run);
  /// As of HostLink, on all connections.
  void announce_rename(std::string_view from, std::string_view to, std::uint32_t flags);
  void settle_rename(std::string_view from, std::string_view to, std::uint32_t flags, bool is_made);
  int rename(std::string_view from, std::string_view to, std::uint32_t flags);

  [[nodiscard]] bool read_only() const { return connections_.front()->host.read_only(); }
  /// As Host::lends.
  [[nodiscard]] bool lends() const { return connections_.front()->host.lends(); }

 private:
  Connection& for_file();

  std::string address_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace wherry::file::mount
