// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/socket_names.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <wherry/error.hpp>

#include "base/config.hpp"
#include "base/name.hpp"
#include "base/refused_call.hpp"
#include "base/user.hpp"
#include "fabric/offer.hpp"
#include "layout/bell_page.hpp"

namespace wherry::fabric::shm {
namespace {

bool well_formed(const layout::ShmHello& hello) {
  const std::uint64_t before = (hello.features & layout::kShmCompact) != 0 ? layout::segment_place(true) : 0;
  return hello.magic == layout::kShmMagic && hello.version == layout::kShmVersion && hello.segment_bytes != 0 &&
         hello.segment_bytes <= kMaxSegmentBytes && (before + hello.segment_bytes) % 4096 == 0 &&
         hello.shared_bytes <= memory::SharedMemory::kMostBytes && hello.shared_bytes % 4096 == 0;
}

/// Returns the companion's number from a packet of a companion's size; 0 if the packet is invalid.
std::uint64_t companion_in(const layout::ShmHello& received) {
  layout::ShmCompanion companion{};
  std::memcpy(&companion, &received, sizeof companion);
  return companion.magic == layout::kShmMagic && companion.version == layout::kShmVersion ? companion.number : 0;
}

/// Returns which descriptors a hello announces, by place.
std::array<bool, layout::kShmMostDescriptors> announced_by(const layout::ShmHello& hello) {
  return {true, hello.shared_bytes != 0, hello.arena_bytes != 0};
}

/// Moves the descriptors, which arrive without gaps, to their places.
void move_to_places(Packet& packet) {
  auto arrived = std::exchange(packet.descriptors, {});
  std::size_t next = 0;
  const auto announced = announced_by(packet.hello);
  for (std::size_t place = 0; place < announced.size(); ++place) {
    if (announced[place]) packet.descriptors[place] = std::move(arrived[next++]);
  }
}

union Control {
  cmsghdr align;
  char bytes[CMSG_SPACE(sizeof(int) * layout::kShmMostDescriptors)];
};

/// Takes all descriptors out of a message, so that none leaks if the packet is refused. Returns their number.
std::size_t collect_descriptors(msghdr& message, Packet& packet) {
  std::size_t count = 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < n; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      UniqueFd owned(fd);
      if (count < packet.descriptors.size()) packet.descriptors[count] = std::move(owned);
      ++count;
    }
  }
  return count;
}

}  // namespace

SocketName socket_name(std::uint16_t node, std::uint16_t port) {
  const std::string text = "wherry/" + std::to_string(::geteuid()) + "/" + config::word(config::Key::job) + "/" +
                           std::to_string(node) + ":" + std::to_string(port);
  SocketName name;
  name.address.sun_family = AF_UNIX;
  // sun_path[0] stays 0: the abstract namespace.
  static_assert(sizeof(name.address.sun_path) > 1 + 7 + 10 + 1 + kMaxJobNameLength + 1 + 11, "the longest name fits");
  std::memcpy(name.address.sun_path + 1, text.data(), text.size());
  name.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return name;
}

UniqueFd make_socket(const std::string& operation, const std::string& address) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) throw Error(errno, operation, address, advice_on(errno, "socket"));
  return fd;
}

Peer credentials(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    throw Error(errno, "read the peer's credentials", "", advice_on(errno, "getsockopt"));
  }
  return {.address = {}, .pid = credentials.pid, .uid = credentials.uid, .gid = credentials.gid};
}

bool same_user(const Peer& peer) { return peer.uid == ::geteuid() && names_one_user(peer.uid); }

void check_own_user(const std::string& operation, const std::string& address) {
  const uid_t own = ::geteuid();
  if (names_one_user(own)) return;
  throw Error(EACCES, operation, address,
              "in this user namespace everybody without a number reads as user " + std::to_string(own) +
                  ", this process too; give its user a number there (unshare --map-current-user)");
}

Address shm_address(std::uint16_t node, std::uint16_t port) {
  Address address{.fabric = "shm", .node = node, .port = {}};
  if (port != 0) address.port = port;
  return address;
}

int send_packet(int socket, const layout::ShmHello& hello, std::span<const int> descriptors) {
  iovec payload{const_cast<layout::ShmHello*>(&hello), sizeof hello};
  Control control{};
  msghdr message{};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(sizeof hello) ? 0 : errno;
}

int send_companion(int socket, std::uint64_t number) {
  const layout::ShmCompanion companion{.magic = layout::kShmMagic, .version = layout::kShmVersion, .number = number};
  const ssize_t n = ::send(socket, &companion, sizeof companion, MSG_NOSIGNAL | MSG_DONTWAIT);
  return n == static_cast<ssize_t>(sizeof companion) ? 0 : errno;
}

namespace {

/// @param flags  of recvmsg
int receive(int socket, Packet& packet, std::uint64_t& companion, int flags) {
  companion = 0;
  iovec payload{&packet.hello, sizeof packet.hello};
  Control control{};
  msghdr message{};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const ssize_t n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT | flags);
  if (n < 0) return errno == EINTR ? EAGAIN : errno;
  const std::size_t count = collect_descriptors(message, packet);
  if (n == 0) return ECONNRESET;
  if (n == sizeof(layout::ShmCompanion) && count == 0 && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0) {
    companion = companion_in(packet.hello);
    return companion == 0 ? EPROTO : 0;
  }
  const bool whole = n == sizeof packet.hello && (message.msg_flags & MSG_TRUNC) == 0;
  const auto places = announced_by(packet.hello);
  const auto announced = whole ? static_cast<std::size_t>(std::count(places.begin(), places.end(), true)) : 1;
  // The kernel passes only as many descriptors as this process has free, and drops the rest.
  if ((message.msg_flags & MSG_CTRUNC) != 0 && count < announced) return EMFILE;
  if (!whole || count != announced || !well_formed(packet.hello)) return EPROTO;
  move_to_places(packet);
  return 0;
}

}  // namespace

int receive_packet(int socket, Packet& packet) {
  std::uint64_t companion = 0;
  const int error = receive(socket, packet, companion, 0);
  return error == 0 && companion != 0 ? EPROTO : error;
}

int look_at_request(int socket, Packet& packet, std::uint64_t& companion) {
  return receive(socket, packet, companion, MSG_PEEK);
}

void take_request(int socket) noexcept {
  // Without a control buffer the kernel closes the packet's descriptors.
  (void)::recv(socket, nullptr, 0, MSG_DONTWAIT);
}

}  // namespace wherry::fabric::shm
