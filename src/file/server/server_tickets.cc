// SPDX-License-Identifier: Apache-2.0
// Tickets: a client lets another one open a file that it has open itself.
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "file/server/server_calls.hpp"
#include "file/wire/open_again.hpp"
#include "file/wire/status.hpp"

namespace wherry::file {
namespace {

using layout::FileCall;

/// Whether the holder of a ticket may make this call on its file.
bool is_of_data(FileCall call) {
  return call == FileCall::read || call == FileCall::write || call == FileCall::flush || call == FileCall::status ||
         call == FileCall::close;
}

}  // namespace

int Calls::refused_by_ticket(const Request& request) const {
  const OpenFile* const file = handles_.find(request.header.handle);
  if (file == nullptr || file->by == nullptr) return 0;
  const auto call = static_cast<FileCall>(request.header.call);
  if (!is_of_data(call)) return EACCES;
  return file->by->has_ended() && call != FileCall::close ? ESTALE : 0;
}

/// Opens the file at once, since the ticket is for this file, whatever happens to its name.
Outcome Calls::make_ticket(const Request& request) {
  constexpr std::uint32_t kBoth = layout::kFileOpenRead | layout::kFileOpenWrite;
  const std::uint32_t flags = request.header.flags;
  if (tickets_ == nullptr) return {.error = EOPNOTSUPP};
  if (flags == 0 || (flags & ~kBoth) != 0) return {.error = EINVAL};
  OpenFile* const file = handles_.find(request.header.handle);
  if (file == nullptr) return {.error = EBADF};
  const int mode = ::fcntl(file->backing->descriptor(), F_GETFL) & O_ACCMODE;
  const bool writes = (flags & layout::kFileOpenWrite) != 0;
  const bool reads = (flags & layout::kFileOpenRead) != 0;
  if ((writes && mode == O_RDONLY) || (reads && mode == O_WRONLY)) return {.error = EACCES};
  const int access = writes ? (reads ? O_RDWR : O_WRONLY) : O_RDONLY;
  UniqueFd descriptor = open_again(file->backing->descriptor(), access | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (!descriptor.valid()) return errno == EAGAIN ? Outcome::of_lease() : Outcome{.error = errno};
  layout::FileStatus status{};
  if (const int error = status_of(descriptor.get(), status); error != 0) return {.error = error};
  if (!S_ISREG(status.mode)) return {.error = EINVAL};
  if (file->tickets.grant() == nullptr) file->tickets = TicketMaker(*tickets_);
  layout::FileTicket ticket{};
  const int error = tickets_->make({std::move(descriptor), file->tickets.grant()}, ticket);
  if (error != 0) return {.error = error};
  const auto bytes = std::as_bytes(std::span(&ticket, 1));
  return {.payload = {bytes.begin(), bytes.end()}};
}

Outcome Calls::open_ticket(const Request& request) {
  layout::FileTicket ticket{};
  if (tickets_ == nullptr) return {.error = EOPNOTSUPP};
  if (request.second.size() != sizeof ticket) return {.error = EINVAL};
  std::memcpy(&ticket, request.second.data(), sizeof ticket);
  Handles::Room room(handles_);
  if (room.error() != 0) return {.error = room.error()};
  auto offer = tickets_->take(ticket);
  if (!offer) return {.error = ESTALE};
  layout::FileStatus status{};
  if (const int error = status_of(offer->descriptor.get(), status); error != 0) return {.error = error};
  const auto bytes = std::as_bytes(std::span(&status, 1));
  Outcome outcome{.payload = {bytes.begin(), bytes.end()}};
  // Lends no descriptor: access through it could not be ended.
  outcome.value =
      room.add({.backing = std::make_unique<Backing>(std::move(offer->descriptor)), .by = std::move(offer->grant)});
  return outcome;
}

Outcome Calls::end_tickets(const Request& request) {
  OpenFile* const file = handles_.find(request.header.handle);
  if (file == nullptr) return {.error = EBADF};
  const std::shared_ptr<Grant>& grant = file->tickets.grant();
  if (grant == nullptr) return {};
  grant->end();
  if (grant->is_in_use()) return Outcome::of_lease();
  file->tickets.end();
  return {};
}

}  // namespace wherry::file
