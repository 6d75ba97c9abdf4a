// SPDX-License-Identifier: Apache-2.0
// Calls of `wherry run --files`: tickets for the way past the mount, reports of writes by them, rings of writes, and
// pages of delegations.
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "file/mount/operations_serve.hpp"
#include "layout/delegation_page.hpp"
#include "layout/host_ticket.hpp"
#include "layout/write_ring.hpp"

namespace wherry::file::mount {
namespace {

/// Copies the argument of an ioctl on a regular file, if it has the right size.
template <class T>
bool take(unsigned flags, std::span<const std::byte> in, T& into) {
  if ((flags & FUSE_IOCTL_DIR) != 0 || in.size() != sizeof into) return false;
  std::memcpy(&into, in.data(), sizeof into);
  return true;
}

int give_ticket(fuse_req_t request, FileSystem& system, fuse_ino_t node, OpenFile& file, layout::HostTicket& wanted) {
  const std::string& address = system.tree().hosts().address();
  const bool is_none = wanted.access == layout::kHostTicketNone;
  if (!is_none && wanted.access != layout::kHostTicketReads && wanted.access != layout::kHostTicketWrites)
    return EINVAL;
  if (address.size() >= sizeof wanted.address) return EOPNOTSUPP;
  layout::FileTicket ticket{};
  if (is_none && file.backing() != nullptr) return EOPNOTSUPP;
  const bool writes = wanted.access == layout::kHostTicketWrites;
  const int error = is_none ? 0 : system.files().make_ticket(node, file, writes, ticket);
  if (error != 0) return error;
  layout::HostTicket made{.version = layout::kHostTicketVersion, .access = wanted.access, .random = {}, .address = {}};
  std::memcpy(made.random, ticket.random, sizeof made.random);
  std::memcpy(made.address, address.data(), address.size());
  fuse_reply_ioctl(request, 0, &made, sizeof made);
  return 0;
}

/// Drops the kernel's pages of a file and then answers an ioctl. Hand it over to a thread that does not serve the
/// mount, since the drop waits for pages that are being read.
LockWaits::Prepared drop_pages_before_answer(fuse_req_t request, FileSystem& system, fuse_ino_t node) {
  return LockWaits::prepare({.node = node,
                             .attempt =
                                 [&system, node] {
                                   system.tree().drop(node, Kept::pages);
                                   return 0;
                                 },
                             .answer =
                                 [request](int error) {
                                   if (error != 0)
                                     fuse_reply_err(request, error);
                                   else
                                     fuse_reply_ioctl(request, 0, nullptr, 0);
                                 }});
}

int handle_written(fuse_req_t request, FileSystem& system, fuse_ino_t node, OpenFile& file,
                   const layout::HostWritten& written) {
  BootId boot{};
  std::memcpy(boot.data(), written.boot, sizeof written.boot);
  LockWaits::Prepared dropping = drop_pages_before_answer(request, system, node);
  // First, even if later steps fail: the program writes again through the mount.
  if (const int error = written.failed != 0 ? OpenFiles::end_write_tickets(file) : 0; error != 0) return error;
  if (const int error = OpenFiles::note_written(file, boot); error != 0) return error;
  if (const int error = drop_set_id(request, system, node); error != 0) return error;
  system.locks().grants().hand_over(std::move(dropping));
  return 0;
}

/// The kernel does not see the writes of a ring. So if the file can be read, the kernel's pages are dropped now, and it
/// gets none without the end of the ring (WriteBehind::settle_for_pages).
int attach_ring(fuse_req_t request, FileSystem& system, fuse_ino_t node, OpenFile& file,
                const layout::WriteRingOffer& offer) {
  const bool may_have_ring = file.writes() && !file.synchronises();
  // A program may have changed O_APPEND after the open.
  if (!may_have_ring || (offer.appends != 0) != file.appends() || file.backing() != nullptr ||
      system.tree().hosts().lends())
    return EOPNOTSUPP;
  WriteBehind& write_behind = system.tree().write_behind();
  if (!write_behind.keeps(node)) return EAGAIN;
  WriteRing::Taken taken = WriteRing::take(fuse_req_ctx(request)->pid, offer);
  if (taken.error != 0) return taken.error;
  LockWaits::Prepared dropping = drop_pages_before_answer(request, system, node);
  if (const int error = write_behind.attach(node, file, std::move(taken.ring), writer_of(request)); error != 0)
    return error;
  if (file.reads())
    system.locks().grants().hand_over(std::move(dropping));
  else
    fuse_reply_ioctl(request, 0, nullptr, 0);
  return 0;
}

int take_ring(fuse_req_t request, FileSystem& system, fuse_ino_t node) {
  system.tree().write_behind().take_ring(node);
  fuse_reply_ioctl(request, 0, nullptr, 0);
  return 0;
}

/// Only for a file that this open file reads through the kernel's page cache.
int attach_page(fuse_req_t request, FileSystem& system, fuse_ino_t node, OpenFile& file,
                const layout::DelegationPageOffer& offer) {
  if (!file.reads() || file.writes() || file.is_direct() || file.backing() != nullptr) return EOPNOTSUPP;
  if (const int error = file.delegation_pages().attach(fuse_req_ctx(request)->pid, offer); error != 0) return error;
  // The kernel may not ask for attributes for a while, and the file be delegated already.
  struct stat attributes{};
  Nodes::Clock::duration kept_for{};
  if (const int error = system.attributes().get(node, attributes, kept_for); error != 0) return error;
  fuse_reply_ioctl(request, 0, nullptr, 0);
  return 0;
}

void control(fuse_req_t request, fuse_ino_t node, unsigned command, void* /*argument*/, fuse_file_info* info,
             unsigned flags, const void* in, std::size_t in_bytes, std::size_t /*out_bytes*/) {
  const std::span content(static_cast<const std::byte*>(in), in_bytes);
  serve(request, [&](FileSystem& system) {
    layout::HostTicket wanted{};
    layout::HostWritten written{};
    layout::WriteRingOffer offer{};
    layout::DelegationPageOffer page{};
    if (command == layout::kHostTicketGet && take(flags, content, wanted))
      return give_ticket(request, system, node, file_of(request, info), wanted);
    if (command == layout::kHostTicketWritten && take(flags, content, written))
      return handle_written(request, system, node, file_of(request, info), written);
    if (command == layout::kWriteRingAttach && take(flags, content, offer))
      return attach_ring(request, system, node, file_of(request, info), offer);
    if (command == layout::kWriteRingTake && (flags & FUSE_IOCTL_DIR) == 0) return take_ring(request, system, node);
    if (command == layout::kDelegationPageAttach && take(flags, content, page))
      return attach_page(request, system, node, file_of(request, info), page);
    return ENOTTY;
  });
}

}  // namespace

void set_ticket_operations(fuse_lowlevel_ops& table) { table.ioctl = control; }

}  // namespace wherry::file::mount
