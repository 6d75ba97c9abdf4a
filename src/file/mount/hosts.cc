// SPDX-License-Identifier: Apache-2.0
#include "file/mount/hosts.hpp"

#include <exception>
#include <string>

#include "base/log.hpp"

namespace wherry::file::mount {

Hosts::Hosts(const HostOptions& options, std::size_t count) {
  connections_.push_back(std::make_unique<Connection>(options));
  HostOptions more = options;
  more.waits = false;
  try {
    while (connections_.size() < count) connections_.push_back(std::make_unique<Connection>(more));
  } catch (const std::exception& error) {
    // A server that serves no more clients: fewer calls at a time.
    log::write(log::Level::warning,
               "wherry mount: goes on with " + std::to_string(connections_.size()) + " connections: " + error.what());
  }
}

/// Of those with as few calls the one with the fewest open files, whose calls would wait for this one. Ties go round.
Hosts::Connection& Hosts::least_busy() {
  const auto load = [](const Connection& connection) {
    return std::pair(connection.calls.load(std::memory_order_relaxed),
                     connection.files.load(std::memory_order_relaxed));
  };
  const std::size_t first = turn_.fetch_add(1, std::memory_order_relaxed);
  Connection* best = connections_[first % connections_.size()].get();
  for (std::size_t i = 1; i < connections_.size(); ++i) {
    Connection& next = *connections_[(first + i) % connections_.size()];
    if (load(next) < load(*best)) best = &next;
  }
  return *best;
}

Hosts::Use Hosts::any() { return Use(least_busy()); }

Host::Opened Hosts::open(std::string_view name, std::uint32_t flags, std::uint32_t mode, std::unique_ptr<File>& file,
                         const File* beside) {
  const Use use(beside != nullptr ? beside->connection_ : least_busy());
  const Host::Opened opened = use->open(name, flags, mode);
  if (opened.error == 0) file = std::make_unique<File>(*use.connection_, opened.handle);
  return opened;
}

int Hosts::rename(std::string_view from, std::string_view to, std::uint32_t flags) {
  const Use use(least_busy());
  const int error = use->rename(from, to, flags);
  if (error != 0) return error;
  for (const auto& connection : connections_) {
    if (connection.get() != use.connection_) connection->host.note_rename(from, to, flags);
  }
  return 0;
}

std::unique_ptr<Hosts::File> Hosts::File::open_locks(std::uint32_t flags, std::shared_ptr<HeldLocks> held,
                                                     int& error) const {
  const Host::Opened opened = use()->open_locks(handle_, flags, std::move(held));
  error = opened.error;
  return error == 0 ? std::make_unique<File>(connection_, opened.handle) : nullptr;
}

Hosts::File::~File() {
  const Use use(connection_);
  // Errors of a close were told by the flush before it.
  if (use->close(handle_) != 0) log::write(log::Level::debug, "wherry mount: a file is closed with an error");
  connection_.files.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace wherry::file::mount
