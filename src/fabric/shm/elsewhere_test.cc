// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/elsewhere.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <wherry/wherry.hpp>

#include "base/namespaces.hpp"
#include "base/scoped_environment.hpp"
#include "fabric/shm/socket_names.hpp"
#include "tests/common/other_user.hpp"

namespace wherry::fabric::shm {
namespace {

/// No other test of this tree listens there.
constexpr std::uint16_t kPort = 2993;
constexpr const char* kAddress = "wherry+shm://0:2993";

/// The listeners there that this test made: others run beside it, in other jobs.
std::vector<ListenerElsewhere> of_jobs_that_begin_with(const std::string& beginning) {
  std::vector<ListenerElsewhere> found = listeners_elsewhere(0, kPort);
  std::erase_if(found, [&](const ListenerElsewhere& other) { return !other.job.starts_with(beginning); });
  return found;
}

TEST(ListenerElsewhere, SaysHowItDiffersAndWhatToChange) {
  const ListenerElsewhere job{.user = "", .job = "b", .process = "", .network = 0};
  EXPECT_EQ(job.difference(), " in job 'b'");
  EXPECT_EQ(job.remedy(), "set WHERRY_JOB=b");
  const ListenerElsewhere all{.user = "5", .job = "b", .process = "77", .network = 4026532276};
  EXPECT_EQ(all.difference(), " of user 5 in job 'b' in network namespace 4026532276 (that of process 77)");
  EXPECT_EQ(all.remedy(),
            "run both sides as one user, set WHERRY_JOB=b, share that network namespace (docs/containers.md)");
  const ListenerElsewhere untold{.user = "", .job = "", .process = "77", .network = 0};
  EXPECT_EQ(untold.difference(), " in the network namespace of process 77");
}

TEST(ListenerElsewhere, IsOneThatListensInAnotherJobAndNoneWhereNobodyDoes) {
  const std::string own = "elsewhere-" + std::to_string(::getpid());
  const ScopedEnvironment job("WHERRY_JOB", own.c_str());
  EXPECT_TRUE(of_jobs_that_begin_with(own).empty());
  const UniqueFd bound = make_socket("test", "");
  const SocketName name = socket_name(0, kPort);
  ASSERT_EQ(::bind(bound.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length), 0);
  const ScopedEnvironment other("WHERRY_JOB", "another");
  EXPECT_TRUE(of_jobs_that_begin_with(own).empty()) << "it has the name and does not listen";
  ASSERT_EQ(::listen(bound.get(), 1), 0);
  const auto found = of_jobs_that_begin_with(own);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].job, own);
  EXPECT_EQ(found[0].user + found[0].process, "");
}

TEST(ListenerElsewhere, IsNotTheOneThatIsReached) {
  const ScopedEnvironment job("WHERRY_JOB", ("elsewhere-own-" + std::to_string(::getpid())).c_str());
  const Listener listener = listen(kAddress);
  for (const ListenerElsewhere& other : listeners_elsewhere(0, kPort)) {
    EXPECT_NE(other.difference(), "");
  }
}

TEST(ListenerElsewhere, OfOneDifferenceComesBeforeThoseOfMore) {
  const std::string own = "elsewhere-order-" + std::to_string(::getpid());
  const ScopedEnvironment job("WHERRY_JOB", own.c_str());
  const SharedValue<std::atomic<int>> listening;
  const Child away([&] {
    const ScopedEnvironment second("WHERRY_JOB", (own + "-away").c_str());
    if (::unshare(::geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) != 0) {
      *listening = -1;
      return false;
    }
    const Listener listener = listen(kAddress);
    *listening = 1;
    while (true) ::pause();
    return true;
  });
  while (*listening == 0) std::this_thread::yield();
  if (*listening < 0) GTEST_SKIP() << "no network namespaces here";
  const Listener near = listen(kAddress);
  const ScopedEnvironment other("WHERRY_JOB", "another");
  const auto found = of_jobs_that_begin_with(own);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].job, own);
  EXPECT_EQ(found[1].job, own + "-away");
  EXPECT_EQ(found[1].process, std::to_string(away.pid()));
  EXPECT_NE(found[1].network, namespace_number("net"));
}

/// Any user can bind any name: what is no job's name does not get into a text.
TEST(ListenerElsewhere, IsNoneWhoseNameHoldsNoJob) {
  const UniqueFd bound = make_socket("test", "");
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text =
      "wherry/" + std::to_string(::geteuid()) + "/\x1b[31m-" + std::to_string(::getpid()) + "/0:2993";
  std::memcpy(name.sun_path + 1, text.data(), text.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  ASSERT_EQ(::bind(bound.get(), reinterpret_cast<const sockaddr*>(&name), length), 0);
  ASSERT_EQ(::listen(bound.get(), 1), 0);
  EXPECT_TRUE(of_jobs_that_begin_with("\x1b").empty());
}

TEST(PlaceOfSearch, NamesUserJobAndNetworkNamespace) {
  const ScopedEnvironment job("WHERRY_JOB", "some-job");
  EXPECT_EQ(place_of_search(), "user " + std::to_string(::geteuid()) + ", job 'some-job', network namespace " +
                                   std::to_string(namespace_number("net")));
}

}  // namespace
}  // namespace wherry::fabric::shm
