// SPDX-License-Identifier: Apache-2.0
// A server whose memory cannot be mapped by workers, as on a network.
#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "base/scoped_environment.hpp"
#include "fixture_test.hpp"

namespace wherry::root {
namespace {

TEST(UnmappedServer, IsRefusedByAWorkerWhenItConnects) {
  const ScopedEnvironment hidden("WHERRY_FAULTS", "hide_map=1");
  AddressExchange exchange;
  Child worker([&] {
    try {
      const WindowClient client(exchange.address());
    } catch (const Error& error) {
      return error.code().value() == ENOTSUP &&
             error.advice() == "the fabric cannot map the server's memory; use one that can, such as shm";
    }
    return false;
  });
  WindowServer server("wherry+faulty+shm://*:*");
  exchange.announce(server);
  std::thread serving([&] { (void)server.next(kTimeout); });
  EXPECT_EQ(worker.wait(), 0);
  server.interrupt();
  serving.join();
}

}  // namespace
}  // namespace wherry::root
