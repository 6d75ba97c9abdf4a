// SPDX-License-Identifier: Apache-2.0
// Where processes meet: Unix sockets in the abstract namespace, one name per (user, job, node, port). The kernel frees
// a name when its last holder dies, however it dies, so nothing is ever left behind; a file in a directory would be.
// What file permissions would have guarded, the kernel's credentials of the other end do.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include <wherry/address.hpp>

#include "base/unique_fd.hpp"
#include "layout/shm_handshake.hpp"

namespace wherry::fabric::shm {

struct SocketName {
  sockaddr_un address{};
  socklen_t length = 0;
};

/// The name of a port of this user's in this job (WHERRY_JOB). Throws Error(EINVAL) for a bad job name.
SocketName socket_name(std::uint16_t node, std::uint16_t port);

/// A non-blocking packet socket. Throws Error(EMFILE).
UniqueFd make_socket(const std::string& operation, const std::string& address);

/// The process at the other end, as the kernel says.
Peer credentials(int socket);

/// True if the other end belongs to this process's effective user, and the kernel can tell that user from others.
bool same_user(const Peer& peer);

/// Throws Error(EACCES) if this process's own user cannot be told from others: every connection would be refused.
void check_own_user(const std::string& operation, const std::string& address);

/// The address of a port on this fabric; port 0: none.
Address shm_address(std::uint16_t node, std::uint16_t port);

/// The handshake's packet and the descriptors that travel with it.
struct Packet {
  layout::ShmHello hello{};
  /// Memory, shown memory, arena, each at its place; but for the first, valid if the hello announces it.
  std::array<UniqueFd, layout::kShmMostDescriptors> descriptors;
};
inline constexpr std::size_t kSharedPlace = 1, kArenaPlace = 2;  ///< in Packet::descriptors

/// Sends one packet. Returns 0 or an errno value.
int send_packet(int socket, const layout::ShmHello& hello, std::span<const int> descriptors);

/// Receives one packet without blocking. Returns 0, EAGAIN when none is there, ECONNRESET at the end, EMFILE when this
/// process has no descriptors left, EPROTO for anything that is not a well-formed hello with its descriptors.
int receive_packet(int socket, Packet& packet);

/// The same for what a connector says first: a hello, or that this connection is a companion; then `companion` is its
/// number, otherwise 0. The request stays in the socket, where it can be looked at again, until take_request().
int look_at_request(int socket, Packet& packet, std::uint64_t& companion);
/// Takes what look_at_request has found out of the socket.
void take_request(int socket) noexcept;

/// Says that this connection is the companion `number`. Returns 0 or an errno value.
int send_companion(int socket, std::uint64_t number);

}  // namespace wherry::fabric::shm
