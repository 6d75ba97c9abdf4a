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

/// Connections to one server. Calls on one connection are serialized, so each call takes the least busy connection. A
/// slow call delays only the files that are open on its connection.
///
/// Thread-safe. Blocks as Host does.
class Hosts {
 private:
  struct Connection {
    explicit Connection(HostOptions options) : host(std::move(options)) {}
    Host host;
    std::atomic<std::uint32_t> calls{0};  ///< calls in progress
    std::atomic<std::uint32_t> files{0};  ///< open files
  };

 public:
  /// Counts as a call on a connection while it lives.
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

  /// An open file at the server. The destructor closes it.
  class File {
   public:
    /// @param is_stable  as Host::Opened
    File(Connection& connection, Host::Handle handle, bool is_stable = false)
        : connection_(connection), handle_(handle), is_stable_(is_stable) {
      connection.files.fetch_add(1, std::memory_order_relaxed);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File();
    [[nodiscard]] Use use() const { return Use(connection_); }
    [[nodiscard]] Host::Handle handle() const { return handle_; }
    /// Whether the file was stable when it was opened.
    [[nodiscard]] bool is_stable() const { return is_stable_; }
    /// Whether both files are on one connection: only then can one request name both.
    [[nodiscard]] bool shares_connection_with(const File& other) const { return &connection_ == &other.connection_; }
    /// As Host::open_again, on the same connection. Returns 0 or an errno value.
    int open_again(std::uint32_t flags, std::unique_ptr<File>& file, layout::FileStatus& status) const;
    /// As HostLocks::open, on the same connection. On failure null, and an errno value.
    [[nodiscard]] std::unique_ptr<File> open_locks(std::uint32_t flags, std::uint64_t process,
                                                   std::shared_ptr<HeldLocks> held, int& error) const;

   private:
    friend class Hosts;
    Connection& connection_;
    Host::Handle handle_;
    bool is_stable_;
  };

  /// Makes `count` connections, or fewer if the server refuses some. Throws Error if the first one fails.
  Hosts(const HostOptions& options, std::size_t count);

  /// The server's address.
  [[nodiscard]] const std::string& address() const { return address_; }

  /// For a call that takes a path.
  [[nodiscard]] Use any();
  /// As Host::open. The file stays on one connection.
  /// @param beside  a file whose connection is to be used; null: any connection
  Host::Opened open(std::string_view name, std::uint32_t flags, std::uint32_t mode, std::unique_ptr<File>& file,
                    const File* beside = nullptr);
  /// As Host::resume.
  std::unique_ptr<File> resume(std::string_view name, std::uint32_t flags, const layout::FileStatus& same, bool lost,
                               UniqueFd kept, const std::optional<HostBoot>& seen);
  /// As in HostLink, on all connections.
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
