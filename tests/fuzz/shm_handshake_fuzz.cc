// SPDX-License-Identifier: Apache-2.0
// A stranger at the rendezvous: garbage packets with any descriptors, to a listener and to a connector of the shm
// fabric. It may be dropped or refused, and no more than that: accepting does not throw, nothing leaks.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include <wherry/wherry.hpp>

#include "base/open_descriptors.hpp"
#include "base/unique_fd.hpp"
#include "fabric/shm/socket_names.hpp"
#include "memory/arena.hpp"
#include "stream/handshake.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/fuzz/quieten.hpp"
#include "window/space.hpp"

namespace wherry::fuzz {
namespace {

using layout::ShmHello;

constexpr std::size_t kMostDescriptors = 6;
constexpr std::uint64_t kCompanion = 1;
constexpr std::size_t kSegmentBytes = 8192 + window::Space::kBytes;

UniqueFd memory(Input& input, std::uint64_t bytes) {
  UniqueFd fd(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (bytes > (1UL << 32)) bytes = 4096;
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) std::abort();
  int seals = F_SEAL_SHRINK | F_SEAL_GROW;
  if (input.one_in(4)) seals = input.number<std::uint8_t>() & 0x1f;
  (void)::fcntl(fd.get(), F_ADD_SEALS, seals);
  return fd;
}

UniqueFd regular_file(std::uint64_t bytes) {
  UniqueFd fd(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  (void)!::ftruncate(fd.get(), static_cast<off_t>(bytes));
  return fd;
}

UniqueFd any_descriptor(Input& input, const ShmHello& hello) {
  switch (input.number<std::uint8_t>() % 7) {
    case 0:
      return UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    case 1:
      return memory(input, layout::kBellPageBytes + hello.segment_bytes);
    case 2:
      return memory(input, input.number<std::uint16_t>());
    case 3:
      return UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC));
    case 4:
      return memory(input, hello.arena_bytes);
    case 5:
      return regular_file(hello.arena_bytes);
    default:
      return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  }
}

/// A hello as it should be, or bent in one place or another.
ShmHello any_hello(Input& input) {
  ShmHello hello{.magic = layout::kShmMagic,
                 .version = layout::kShmVersion,
                 .node = 0,
                 .port = 0,
                 .features = 0,
                 .segment_bytes = kSegmentBytes,
                 .greeting = {},
                 .shared_bytes = input.one_in(2) ? 8192U : 0U,
                 .arena_bytes = input.one_in(2) ? 2 * memory::kArenaChunk : 0,
                 .companion = input.one_in(2) ? kCompanion : 0};
  const fabric::Offer offer = stream::offer_of({.own = 4096, .windows = hello.arena_bytes != 0});
  std::memcpy(hello.greeting, offer.greeting.data(), offer.greeting.size());
  while (input.one_in(2)) {
    auto* bytes = reinterpret_cast<std::uint8_t*>(&hello);
    bytes[input.number<std::uint8_t>() % sizeof hello] ^= input.number<std::uint8_t>();
  }
  return hello;
}

std::vector<UniqueFd> any_descriptors(Input& input, const ShmHello& hello) {
  std::vector<UniqueFd> descriptors;
  if (!input.one_in(2)) {
    descriptors.push_back(memory(input, layout::kBellPageBytes + hello.segment_bytes));
    if (hello.shared_bytes != 0) descriptors.push_back(memory(input, hello.shared_bytes));
    if (hello.arena_bytes != 0) descriptors.push_back(memory(input, hello.arena_bytes));
    return descriptors;
  }
  for (std::size_t n = input.number<std::uint8_t>() % (kMostDescriptors + 1); n > 0; --n) {
    descriptors.push_back(any_descriptor(input, hello));
  }
  return descriptors;
}

void send_any_packet(int socket, Input& input) {
  const ShmHello hello = any_hello(input);
  const auto descriptors = any_descriptors(input, hello);
  std::array<std::uint8_t, 2 * sizeof hello> bytes{};
  std::memcpy(bytes.data(), &hello, sizeof hello);
  const std::size_t length = input.one_in(8) ? input.number<std::uint8_t>() % bytes.size() : sizeof hello;
  iovec payload{bytes.data(), length};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)> control{};
  msghdr message{};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
    for (std::size_t i = 0; i < descriptors.size(); ++i) {
      const int fd = descriptors[i].get();
      std::memcpy(CMSG_DATA(header) + i * sizeof fd, &fd, sizeof fd);
    }
  }
  (void)::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/// What a program does with a stream that came about.
void use(Stream& stream) {
  std::array<std::byte, 100> bytes{};
  (void)stream.try_send(bytes);
  (void)stream.try_receive(bytes);
}

UniqueFd connected_to(const Listener& listener) {
  const auto name = fabric::shm::socket_name(*listener.local().node, *listener.local().port);
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) != 0) std::abort();
  return socket;
}

void attack_listener(Input& input) {
  Listener listener = listen("wherry+shm://*:*", {.ring_bytes = 4096, .windows = true});
  UniqueFd companion = connected_to(listener);
  if (!input.one_in(8)) (void)fabric::shm::send_companion(companion.get(), kCompanion);
  UniqueFd socket = connected_to(listener);
  std::optional<Stream> stream;
  for (int packets = 0; packets < 3; ++packets) {
    if (input.one_in(8)) companion.reset();
    if (companion.valid() && input.one_in(4)) send_any_packet(companion.get(), input);
    if (input.one_in(8)) socket.reset();
    if (socket.valid()) send_any_packet(socket.get(), input);
    if (!stream) stream = listener.try_accept();
    if (stream) use(*stream);
  }
}

void attack_connector(Input& input) {
  const auto name = fabric::shm::socket_name(0, 7);
  const UniqueFd listening(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::bind(listening.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) != 0 ||
      ::listen(listening.get(), 2) != 0) {
    std::abort();
  }
  Connecting connecting = start_connect("wherry+shm://0:7", {.ring_bytes = 4096, .windows = true});
  const UniqueFd companion(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  const UniqueFd socket(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (input.one_in(4)) send_any_packet(companion.get(), input);
  send_any_packet(socket.get(), input);
  try {
    if (auto stream = connecting.try_finish()) use(*stream);
  } catch (const Error& error) {
    if (error.code().value() == 0 || error.advice().empty()) std::abort();
  }
}

}  // namespace
}  // namespace wherry::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  wherry::fuzz::quieten();
  (void)wherry::memory::Arena::instance();  // a process opens it once
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wherry;
  const std::size_t open_before = open_descriptors();
  fuzz::Input input({data, size});
  if (input.one_in(2)) {
    fuzz::attack_connector(input);
  } else {
    fuzz::attack_listener(input);
  }
  if (open_descriptors() != open_before) std::abort();
  return 0;
}
