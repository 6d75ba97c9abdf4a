// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/ports.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <set>
#include <string>

#include <wherry/error.hpp>

#include "fabric/ofi/rendezvous_fixture.hpp"
#include "fabric/ofi/socket_address.hpp"

namespace wherry::fabric::ofi {
namespace {

TEST(OfiPorts, EachOfTheRangeStandsOnceInTheOrder) {
  const PortOrder order({47000, 47999}, job_number("default"), 3, 2000);
  std::set<std::uint16_t> ports;
  for (std::size_t i = 0; i < order.size(); ++i) ports.insert(order[i]);
  EXPECT_EQ(ports.size(), 1000U);
  EXPECT_EQ(*ports.begin(), 47000);
  EXPECT_EQ(*ports.rbegin(), 47999);
}

// All hosts agree: these are those of version 1 of the rendezvous.
TEST(OfiPorts, TheOrderIsTheSameOnAllHosts) {
  EXPECT_EQ(job_number("default"), 16982411286042166782U);
  EXPECT_EQ(PortOrder({47000, 47999}, job_number("default"), 0, 2000)[0], 47752);
  EXPECT_EQ(PortOrder({47000, 47999}, job_number("default"), 1, 2000)[0], 47283);
}

TEST(OfiPorts, AddressesSpreadOverTheRange) {
  std::set<std::uint16_t> first;
  for (std::uint16_t node = 0; node < 10; ++node) {
    for (std::uint16_t port = 2000; port < 2010; ++port) {
      first.insert(PortOrder({47000, 47999}, job_number("default"), node, port)[0]);
    }
  }
  EXPECT_GT(first.size(), 85U);  // of 100; 95 are to be expected
}

TEST(OfiPorts, AnAddressIsHeldUntilItsEnd) {
  const std::string job = test_settings().job;
  UniqueFd held = hold_address(job, 1, 2);
  EXPECT_TRUE(held.valid());
  EXPECT_FALSE(hold_address(job, 1, 2).valid());
  EXPECT_EQ(errno, EADDRINUSE);
  EXPECT_TRUE(hold_address(job, 1, 3).valid());
  EXPECT_TRUE(hold_address(job, 2, 2).valid());
  EXPECT_TRUE(hold_address(job + "2", 1, 2).valid());
  held.reset();
  EXPECT_TRUE(hold_address(job, 1, 2).valid());
}

TEST(OfiPorts, WithoutAFreePortTheErrorNamesTheRange) {
  const PortOrder order({20500, 20501}, 0, 0, 0);
  try {
    const UniqueFd first = listen_on_first_free(order);
    const UniqueFd second = listen_on_first_free(order);
    const UniqueFd third = listen_on_first_free(order);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code().value(), EADDRINUSE);
    EXPECT_NE(std::string(error.what()).find("WHERRY_PORTS"), std::string::npos);
  }
}

TEST(OfiAddress, IsShownAsPeopleWriteIt) {
  EXPECT_EQ(resolve("192.0.2.1").front().with_port(80).to_string(), "192.0.2.1:80");
  EXPECT_EQ(resolve("2001:db8::1").front().with_port(80).to_string(), "[2001:db8::1]:80");
  EXPECT_EQ(resolve("2001:db8::1").front().with_port(80).port(), 80);
  const SocketAddress mapped = resolve("::ffff:192.0.2.1").front().with_port(80);
  EXPECT_EQ(mapped.to_string(), "192.0.2.1:80");
  EXPECT_EQ(mapped.family(), AF_INET);
  EXPECT_EQ(SocketAddress().to_string(), "?");
}

}  // namespace
}  // namespace wherry::fabric::ofi
