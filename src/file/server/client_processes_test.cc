// SPDX-License-Identifier: Apache-2.0
#include "file/server/client_processes.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include <wherry/error.hpp>

#include "tests/common/served_directory.hpp"

namespace wherry::file {
namespace {

using namespace std::chrono_literals;

TEST(ClientProcessesTest, AnEarlierProcessOfTheSameClientGoesFirst) {
  ClientProcesses all;
  std::optional<ClientProcesses::Member> first(std::in_place, all, 1, 1);
  const ClientProcesses::Member beside(all, 1, 1);
  const ClientProcesses::Member second(all, 1, 2);
  const ClientProcesses::Member other(all, 2, 5);
  EXPECT_FALSE(first->has_earlier() || beside.has_earlier() || other.has_earlier());
  EXPECT_TRUE(second.has_earlier());
  first.reset();
  EXPECT_TRUE(second.has_earlier());
}

TEST(ClientProcessesTest, AServerAnswersTheNextProcessOnceItServesTheEarlierNoMore) {
  const ServedDirectory served;
  const auto connect = [&](std::uint64_t client, std::uint64_t number, Timeout timeout) {
    return StreamConnection(served.address(), 0, {}, {}, timeout, {.client = client, .number = number});
  };
  std::optional<StreamConnection> first(std::in_place, served.address(), 0, AtFaultPoint(), Timeout(), Timeout(),
                                        ClientProcess{.client = 7, .number = 1});
  EXPECT_THROW(connect(7, 2, 50ms), Error);
  connect(7, 1, {});
  connect(8, 2, {});
  connect(0, 0, {});
  first.reset();
  connect(7, 2, {});
}

}  // namespace
}  // namespace wherry::file
