// SPDX-License-Identifier: Apache-2.0
#include "file/direct/direct_files.hpp"

#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

namespace wherry::file {
namespace {

/// Empty: the ticket has another version.
std::optional<std::string> address_in(const layout::HostTicket& ticket) {
  const std::size_t length = ::strnlen(ticket.address, sizeof ticket.address);
  if (ticket.version != layout::kHostTicketVersion || length == sizeof ticket.address) return {};
  return std::string(ticket.address, length);
}

}  // namespace

/// Opens one more connection per file up to the limit, then shares the one with the fewest files.
std::shared_ptr<DirectHost> DirectFiles::connection(const std::string& address) {
  const std::lock_guard lock(mutex_);
  std::erase_if(connections_, [](const Connection& one) { return one.host->is_broken(); });
  std::size_t count = 0;
  std::shared_ptr<DirectHost> best;
  for (const Connection& one : connections_) {
    if (one.address != address) continue;
    ++count;
    if (best == nullptr || one.host.use_count() < best.use_count() - 1) best = one.host;
  }
  // One reference in the list, and one here.
  constexpr long kUnused = 2;
  if (best != nullptr && best.use_count() == kUnused) return best;
  if (count >= kMostConnections) return best;
  auto made = std::make_shared<DirectHost>(address, caller_);
  connections_.push_back({address, made});
  return made;
}

int DirectFiles::connect(const layout::HostTicket& ticket) {
  const auto address = address_in(ticket);
  if (!address) return EINVAL;
  (void)connection(*address);
  return 0;
}

int DirectFiles::open(const layout::HostTicket& ticket, std::unique_ptr<File>& file) {
  const auto address = address_in(ticket);
  if (!address) return EINVAL;
  layout::FileTicket number{};
  std::memcpy(number.random, ticket.random, sizeof number.random);
  auto made = std::make_unique<File>();
  made->host = connection(*address);
  const int error = made->host->open(number, made->file);
  if (error == 0) file = std::move(made);
  return error;
}

void DirectFiles::forget_after_fork() {
  for (const Connection& one : connections_) one.host->forget_after_fork();
}

}  // namespace wherry::file
