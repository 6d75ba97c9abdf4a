// SPDX-License-Identifier: Apache-2.0
#include "adapters/scif/own_packet.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "adapters/scif/socket.hpp"
#include "base/unique_fd.hpp"

namespace wherry::scif {
namespace {

/// Borrows the peer's socket. As long as the copy exists, a few microseconds, the peer's death does not show on this
/// side's socket.
UniqueFd borrow(fabric::Connection& connection, const layout::ScifSocket& shown) {
  // SCIF-SOCKET acquire: the number; pairs with the release in Link::show.
  const std::uint64_t inode = shown.inode.load(std::memory_order_acquire);
  if (inode == 0) return {};
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, connection.peer().pid, 0)));
  // Checked after the process was opened, because process numbers are reused.
  fabric::PrivateMemory* const memory = connection.private_memory();
  if (!process.valid() || memory == nullptr || !memory->recognise()) return {};
  const auto number = static_cast<int>(shown.descriptor.load(std::memory_order_relaxed));
  UniqueFd socket(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), number, 0)));
  // The peer's program may have closed it and opened something else.
  if (!socket.valid() || inode_of(socket.get()) != inode) return {};
  return socket;
}

}  // namespace

bool PeersSocket::can_be_borrowed() const { return borrow(connection_, shown_).valid(); }

bool PeersSocket::send_own_packet() const {
  const UniqueFd socket = borrow(connection_, shown_);
  return socket.valid() && ::send(socket.get(), &kOwnPacket, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

}  // namespace wherry::scif
