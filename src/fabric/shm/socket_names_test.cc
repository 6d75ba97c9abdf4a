// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/socket_names.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include <wherry/error.hpp>

#include "base/scoped_environment.hpp"

namespace wherry::fabric::shm {
namespace {

struct Sockets {
  Sockets() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    near.reset(ends[0]);
    far.reset(ends[1]);
  }
  UniqueFd near, far;
};

/// What a handshake sends, or something else.
struct Descriptors {
  UniqueFd memory{::open("/dev/zero", O_RDWR | O_CLOEXEC)};
  UniqueFd shown{::open("/dev/zero", O_RDWR | O_CLOEXEC)};
};

layout::ShmHello good_hello() {
  return {.magic = layout::kShmMagic,
          .version = layout::kShmVersion,
          .node = 3,
          .port = 4,
          .features = 0,
          .segment_bytes = 8192,
          .greeting = {1, 2, 3},
          .shared_bytes = 0,
          .arena_bytes = 0,
          .companion = 0};
}

int open_descriptors() {
  DIR* folder = ::opendir("/proc/self/fd");
  int count = 0;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

/// What the receiver makes of this packet.
int received(const layout::ShmHello& hello, std::span<const int> descriptors, Packet& packet) {
  const Sockets sockets;
  EXPECT_EQ(send_packet(sockets.far.get(), hello, descriptors), 0);
  return receive_packet(sockets.near.get(), packet);
}

TEST(Handshake, CarriesTheHelloAndTheMemory) {
  const Descriptors sent;
  Packet packet;
  ASSERT_EQ(received(good_hello(), std::array{sent.memory.get()}, packet), 0);
  EXPECT_EQ(packet.hello.node, 3);
  EXPECT_EQ(packet.hello.greeting[2], 3);
  EXPECT_NE(::fcntl(packet.descriptors[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_FALSE(packet.descriptors[kSharedPlace].valid());
}

TEST(Handshake, CarriesAnotherDescriptorWhereMemoryIsShownAndOnlyThere) {
  const Descriptors sent;
  layout::ShmHello hello = good_hello();
  hello.shared_bytes = 4096;
  const std::array both{sent.memory.get(), sent.shown.get()};
  Packet packet;
  ASSERT_EQ(received(hello, both, packet), 0);
  EXPECT_TRUE(packet.descriptors[kSharedPlace].valid());
  EXPECT_EQ(received(hello, std::array{sent.memory.get()}, packet), EPROTO) << "announced, not sent";
  EXPECT_EQ(received(good_hello(), both, packet), EPROTO) << "sent, not announced";
}

TEST(Handshake, TellsACompanionFromAHello) {
  const Sockets sockets;
  Packet packet;
  std::uint64_t number = 0;
  ASSERT_EQ(send_companion(sockets.far.get(), 17), 0);
  EXPECT_EQ(look_at_request(sockets.near.get(), packet, number), 0);
  EXPECT_EQ(number, 17U);
  EXPECT_EQ(receive_packet(sockets.near.get(), packet), EPROTO) << "where only a hello may come";
  ASSERT_EQ(send_companion(sockets.far.get(), 0), 0);
  EXPECT_EQ(look_at_request(sockets.near.get(), packet, number), EPROTO) << "without a number";
  take_request(sockets.near.get());
  const Descriptors sent;
  ASSERT_EQ(send_packet(sockets.far.get(), good_hello(), std::array{sent.memory.get()}), 0);
  EXPECT_EQ(look_at_request(sockets.near.get(), packet, number), 0);
  EXPECT_EQ(number, 0U);
}

TEST(Handshake, ThatIsNotThereYetIsToldFromOneThatWillNeverCome) {
  Sockets sockets;
  Packet packet;
  EXPECT_EQ(receive_packet(sockets.near.get(), packet), EAGAIN);
  sockets.far.reset();
  EXPECT_EQ(receive_packet(sockets.near.get(), packet), ECONNRESET);
}

TEST(Handshake, OfAnotherVersionOrWithAnImpossibleSegmentIsRefused) {
  const Descriptors sent;
  std::vector<layout::ShmHello> bad(6, good_hello());
  bad[0].magic ^= 1;
  bad[1].version += 1;
  bad[2].segment_bytes = 0;
  bad[3].segment_bytes = 4097;
  bad[4].segment_bytes = UINT64_MAX & ~std::uint64_t{4095};
  bad[5].shared_bytes = UINT64_MAX & ~std::uint64_t{4095};
  for (const auto& hello : bad) {
    Packet packet;
    EXPECT_EQ(received(hello, std::array{sent.memory.get()}, packet), EPROTO);
  }
}

TEST(Handshake, OfTheWrongLengthIsRefused) {
  Sockets sockets;
  const std::vector<char> bytes(200, 'x');
  for (const std::size_t length : {std::size_t{1}, sizeof(layout::ShmHello) - 1, bytes.size()}) {
    Packet packet;
    ASSERT_EQ(::send(sockets.far.get(), bytes.data(), length, 0), static_cast<ssize_t>(length));
    EXPECT_EQ(receive_packet(sockets.near.get(), packet), EPROTO) << length;
  }
}

TEST(Handshake, WithMoreDescriptorsThanAgreedIsRefusedAndLeaksNone) {
  const int before = open_descriptors();
  {
    const Descriptors sent;
    Sockets sockets;
    layout::ShmHello hello = good_hello();
    std::vector<int> many(40, sent.shown.get());
    std::vector<char> control(CMSG_SPACE(many.size() * sizeof(int)));
    iovec payload{&hello, sizeof hello};
    msghdr message{};
    message.msg_iov = &payload;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(many.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), many.data(), many.size() * sizeof(int));
    ASSERT_EQ(::sendmsg(sockets.far.get(), &message, 0), static_cast<ssize_t>(sizeof hello));
    Packet packet;
    EXPECT_EQ(receive_packet(sockets.near.get(), packet), EPROTO);
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(SocketName, KeepsJobsApartAndRefusesNamesThatAreNone) {
  const SocketName plain = socket_name(1, 2000);
  const ScopedEnvironment job("WHERRY_JOB", "other.job-1");
  const SocketName other = socket_name(1, 2000);
  EXPECT_EQ(plain.address.sun_path[0], '\0') << "the abstract namespace";
  EXPECT_NE(std::string(plain.address.sun_path + 1, plain.length),
            std::string(other.address.sun_path + 1, other.length));
  for (const char* bad : {"a/b", "a b", "../x"}) {
    const ScopedEnvironment wrong("WHERRY_JOB", bad);
    EXPECT_THROW(socket_name(1, 2000), Error) << bad;
  }
}

TEST(SocketName, OfTheLongestJobFits) {
  const ScopedEnvironment job("WHERRY_JOB", std::string(64, 'j').c_str());
  const SocketName name = socket_name(65535, 65535);
  EXPECT_LE(name.length, sizeof(sockaddr_un));
}

}  // namespace
}  // namespace wherry::fabric::shm
