// SPDX-License-Identifier: Apache-2.0
// Where processes meet: Unix sockets in the abstract namespace, one name per (user, job, node, port). The kernel frees
// a name when its last holder dies, in whatever way. A file in a directory would be left behind. Instead of file
// permissions, the kernel's credentials of the other end are checked.
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

/// Returns the name of a port of this user in this job (WHERRY_JOB). Throws Error(EINVAL) for an invalid job name.
SocketName socket_name(std::uint16_t node, std::uint16_t port);

/// Creates a non-blocking packet socket. Throws Error(EMFILE).
UniqueFd make_socket(const std::string& operation, const std::string& address);

/// Returns the process at the other end, as the kernel reports it. Throws Error.
Peer credentials(int socket);

/// Returns whether the other end belongs to this process's effective user. False if the kernel cannot distinguish that
/// user from others.
bool same_user(const Peer& peer);

/// Throws Error(EACCES) if the kernel cannot distinguish this process's user from others. Every connection would then
/// be refused.
void check_own_user(const std::string& operation, const std::string& address);

/// Returns the address of a port on this fabric. Port 0: without a port.
Address shm_address(std::uint16_t node, std::uint16_t port);

/// A packet of the handshake, with its descriptors.
struct Packet {
  layout::ShmHello hello{};
  /// Memory, shown memory, and arena, each at its place. All but the first are valid only if the hello announces them.
  std::array<UniqueFd, layout::kShmMostDescriptors> descriptors;
};
inline constexpr std::size_t kSharedPlace = 1, kArenaPlace = 2;  ///< in Packet::descriptors

/// Sends one packet. Returns 0 or an errno value.
int send_packet(int socket, const layout::ShmHello& hello, std::span<const int> descriptors);

/// Receives one packet without blocking. Returns 0, or an errno value. EAGAIN: there is none. ECONNRESET: end of the
/// connection. EMFILE: this process has no free descriptor. EPROTO: not a well-formed hello with its descriptors.
int receive_packet(int socket, Packet& packet);

/// The same for the first packet of a connector: a hello, or the announcement of a companion. Sets `companion` to the
/// companion's number, or to 0 for a hello. The packet stays in the socket until take_request(), and can be read again.
int look_at_request(int socket, Packet& packet, std::uint64_t& companion);
/// Removes the packet that look_at_request has read from the socket.
void take_request(int socket) noexcept;

/// Announces that this connection is the companion `number`. Returns 0 or an errno value.
int send_companion(int socket, std::uint64_t number);

}  // namespace wherry::fabric::shm
