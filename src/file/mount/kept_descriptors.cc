// SPDX-License-Identifier: Apache-2.0
#include "file/mount/kept_descriptors.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <utility>

#include <wherry/error.hpp>

#include "file/mount/fault_points.hpp"
#include "file/mount/layout/kept_descriptors.hpp"

namespace wherry::file::mount {
namespace {

using layout::KeeperMessage;
using layout::KeeperWord;

std::uint32_t number_of(KeeperWord word) { return static_cast<std::uint32_t>(word); }

}  // namespace

bool KeeperSocket::send(int socket, std::uint32_t word, KeptKey key, int descriptor, const std::string& text) {
  KeeperMessage message{.word = word, .kind = static_cast<std::uint32_t>(key.kind), .id = key.id};
  std::array<iovec, 2> parts{{{&message, sizeof message}, {const_cast<char*>(text.data()), text.size()}}};
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (descriptor >= 0) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

KeeperSocket::Received KeeperSocket::receive(int socket, bool waits) {
  KeeperMessage message{};
  std::array<char, PATH_MAX> text{};
  std::array<iovec, 2> parts{{{&message, sizeof message}, {text.data(), text.size()}}};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t got = -1;
  do {
    got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | (waits ? 0 : MSG_DONTWAIT));
  } while (got < 0 && errno == EINTR);
  Received received;
  if (got < static_cast<ssize_t>(sizeof message)) return received;
  for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(&header, one)) {
    int descriptor = -1;
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    std::memcpy(&descriptor, CMSG_DATA(one), sizeof descriptor);
    received.descriptor.reset(descriptor);
  }
  received.word = message.word;
  received.key = {.kind = static_cast<KeptKind>(message.kind), .id = message.id};
  received.text.assign(text.data(), static_cast<std::size_t>(got) - sizeof message);
  return received;
}

KeptDescriptors::KeptDescriptors(UniqueFd supervisor) : supervisor_(std::move(supervisor)) {
  while (supervisor_.valid()) {
    KeeperSocket::Received received = KeeperSocket::receive(supervisor_.get(), true);
    if (received.word == number_of(KeeperWord::all)) break;
    // With some of the descriptors this process would serve programs, and lose what lies behind the others.
    const bool lacks_descriptor = received.word == number_of(KeeperWord::keep) && !received.descriptor.valid();
    if (received.word == 0 || lacks_descriptor)
      throw Error(lacks_descriptor ? EMFILE : EPIPE, "take over from", "the supervisor",
                  "it was killed, or the limit of open files is too low (ulimit -n); unmount the directory, and mount "
                  "it again");
    if (received.descriptor.valid()) inherited_[received.key] = std::move(received.descriptor);
  }
}

bool KeptDescriptors::has_supervisor() const { return supervisor_.valid(); }

bool KeptDescriptors::keep(KeptKey key, int descriptor) const {
  const bool is_kept =
      has_supervisor() && KeeperSocket::send(supervisor_.get(), number_of(KeeperWord::keep), key, descriptor);
  pass(FaultPoint::descriptor_kept);
  return is_kept;
}

void KeptDescriptors::drop(KeptKey key) const {
  if (has_supervisor()) KeeperSocket::send(supervisor_.get(), number_of(KeeperWord::drop), key);
}

bool KeptDescriptors::has(KeptKey key) {
  const std::lock_guard lock(mutex_);
  return inherited_.contains(key);
}

UniqueFd KeptDescriptors::take(KeptKey key) {
  const std::lock_guard lock(mutex_);
  auto found = inherited_.extract(key);
  return found.empty() ? UniqueFd() : std::move(found.mapped());
}

void KeptDescriptors::drop_rest() {
  std::map<KeptKey, UniqueFd> rest;
  {
    const std::lock_guard lock(mutex_);
    rest.swap(inherited_);
  }
  for (const auto& [key, descriptor] : rest) drop(key);
}

void KeptDescriptors::report_mounted(const std::string& directory) const {
  if (has_supervisor()) KeeperSocket::send(supervisor_.get(), number_of(KeeperWord::mounted), {}, -1, directory);
}

void KeptDescriptors::report_ready() const {
  if (has_supervisor()) KeeperSocket::send(supervisor_.get(), number_of(KeeperWord::ready), {});
}

void KeptDescriptors::report_served() const {
  if (has_supervisor()) KeeperSocket::send(supervisor_.get(), number_of(KeeperWord::served), {});
}

}  // namespace wherry::file::mount
