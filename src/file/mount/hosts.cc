// SPDX-License-Identifier: Apache-2.0
#include "file/mount/hosts.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <string>
#include <utility>

#include "base/log.hpp"

namespace wherry::file::mount {

Hosts::Hosts(const HostOptions& options, std::size_t count) : address_(options.address) {
  connections_.push_back(std::make_unique<Connection>(options));
  HostOptions more = options;
  more.waits = false;
  try {
    while (connections_.size() < count) connections_.push_back(std::make_unique<Connection>(more));
  } catch (const std::exception& error) {
    // The server accepts no more clients: fewer calls at a time.
    log::write(log::Level::warning,
               "wherry mount: uses only " + std::to_string(connections_.size()) + " connections: " + error.what());
  }
}

/// Takes the first of the connections with the fewest calls. So successive calls meet a server's thread that still
/// polls.
Hosts::Use Hosts::any() {
  const auto load = [](const auto& connection) { return connection->calls.load(std::memory_order_relaxed); };
  return Use(**std::ranges::min_element(connections_, {}, load));
}

/// Chooses a connection for a file. Calls on the file wait for calls on other files of the connection. Lent files make
/// few calls, so up to 64 of them count as one.
Hosts::Connection& Hosts::for_file() {
  constexpr std::uint32_t kTogether = 64;
  const auto load = [together = lends() ? kTogether : 1](const auto& connection) {
    return std::pair(connection->calls.load(std::memory_order_relaxed),
                     connection->files.load(std::memory_order_relaxed) / together);
  };
  return **std::ranges::min_element(connections_, {}, load);
}

Host::Opened Hosts::open(std::string_view name, std::uint32_t flags, std::uint32_t mode, std::unique_ptr<File>& file,
                         const File* beside) {
  const auto by = [&](Connection& connection) {
    const Use use(connection);
    const Host::Opened opened = use->open(name, flags, mode);
    if (opened.error == 0) file = std::make_unique<File>(connection, opened.handle, opened.is_stable);
    return opened;
  };
  if (beside != nullptr) return by(beside->connection_);
  Connection& best = for_file();
  Host::Opened opened = by(best);
  // Each connection is a separate client of the server, and has its own limit of files.
  for (const auto& other : connections_) {
    if (opened.error != EMFILE) break;
    if (other.get() != &best) opened = by(*other);
  }
  return opened;
}

std::unique_ptr<Hosts::File> Hosts::resume(std::string_view name, std::uint32_t flags, const layout::FileStatus& same,
                                           bool lost, UniqueFd kept, const std::optional<HostBoot>& seen) {
  Connection& connection = for_file();
  return std::make_unique<File>(connection, connection.host.resume(name, flags, same, lost, std::move(kept), seen));
}

void Hosts::announce_rename(std::string_view from, std::string_view to, std::uint32_t flags) {
  for (const auto& connection : connections_) connection->host.names().announce_rename(from, to, flags);
}

void Hosts::settle_rename(std::string_view from, std::string_view to, std::uint32_t flags, bool is_made) {
  for (const auto& connection : connections_) connection->host.names().settle_rename(from, to, flags, is_made);
}

/// The other connections may reopen their files meanwhile. The connection that makes the rename renames its own files.
int Hosts::rename(std::string_view from, std::string_view to, std::uint32_t flags) {
  announce_rename(from, to, flags);
  const Use use = any();
  const int error = use->names().rename(from, to, flags);
  for (const auto& connection : connections_) {
    const bool is_other = connection.get() != use.connection_;
    connection->host.names().settle_rename(from, to, flags, error == 0 && is_other);
  }
  return error;
}

std::unique_ptr<Hosts::File> Hosts::File::open_locks(std::uint32_t flags, std::uint64_t process,
                                                     std::shared_ptr<HeldLocks> held, int& error) const {
  const HostLocks::Opened opened = use()->locks().open(handle_, flags, std::move(held), process);
  error = opened.error;
  return error == 0 ? std::make_unique<File>(connection_, opened.handle) : nullptr;
}

int Hosts::File::open_again(std::uint32_t flags, std::unique_ptr<File>& file, layout::FileStatus& status) const {
  const Host::Opened opened = use()->open_again(handle_, flags);
  status = opened.status;
  if (opened.error == 0) file = std::make_unique<File>(connection_, opened.handle, opened.is_stable);
  return opened.error;
}

Hosts::File::~File() {
  const Use use(connection_);
  // The flush before it has reported errors of the close.
  if (use->close(handle_) != 0) log::write(log::Level::debug, "wherry mount: closing a file at the server failed");
  connection_.files.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace wherry::file::mount
