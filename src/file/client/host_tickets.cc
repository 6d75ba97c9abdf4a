// SPDX-License-Identifier: Apache-2.0
#include "file/client/host_tickets.hpp"

#include <cerrno>
#include <span>

namespace wherry::file {

using layout::FileCall;

int HostTickets::make(Handle handle, std::uint32_t flags, layout::FileTicket& ticket) {
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return EBADF;
  HostLink::Asked asked;
  asked.request.call = static_cast<std::uint32_t>(FileCall::make_ticket);
  asked.request.flags = flags;
  const int error = link_.call(asked, file.get(), std::as_writable_bytes(std::span(&ticket, 1)));
  if (error == 0 && (flags & layout::kFileOpenWrite) != 0) file->unflushed = file->has_write_tickets = true;
  return error;
}

int HostTickets::end(Handle handle) {
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return EBADF;
  // The tickets of a broken connection have ended with it.
  HostLink::Asked asked{.once = true};
  asked.request.call = static_cast<std::uint32_t>(FileCall::end_tickets);
  const int error = link_.call(asked, file.get());
  if (error != 0 && error != ECONNRESET && error != ESTALE) return error;
  file->has_write_tickets = false;
  return 0;
}

int HostTickets::note_written(Handle handle, const BootId& boot) {
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return EBADF;
  if (boot != link_.boot()) return EIO;
  file->unflushed = true;
  return 0;
}

}  // namespace wherry::file
