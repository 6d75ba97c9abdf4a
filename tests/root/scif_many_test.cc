// SPDX-License-Identifier: Apache-2.0
// As many TScifs as ROOT's TMonitor can wait for, which calls select().
#include <TMonitor.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "scif_fixture.hpp"

namespace {

constexpr int kWorkers = 240;
constexpr int kMessages = 3;

/// Both ends of each are in this process.
constexpr rlim_t kOpenFiles = kWorkers * rlim_t{16} + FD_SETSIZE;

bool can_open(rlim_t files) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(files, limit.rlim_max));
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= files;
}

void work(const char* url) {
  std::vector<std::unique_ptr<TScif>> sockets;
  for (int worker = 0; worker < kWorkers; ++worker) {
    sockets.push_back(std::make_unique<TScif>(url));
    ASSERT_TRUE(sockets.back()->IsValid());
  }
  for (int message = 0; message < kMessages; ++message) {
    for (const auto& socket : sockets) EXPECT_GT(socket->Send(message, 1), 0);
  }
  for (const auto& socket : sockets) {
    Int_t value = 0;
    Int_t kind = 0;
    EXPECT_GT(socket->Recv(value, kind), 0);
  }
}

/// The loop of ROOT's merge servers.
TEST(ScifMany, TwoHundredAndFortyAreServedByOneMonitor) {
  if (!can_open(kOpenFiles)) GTEST_SKIP() << "so many files cannot be opened here";
  ROOT::EnableThreadSafety();
  TServerScif server("wherry://*:*");
  std::thread workers([&] { work(server.GetUrl()); });
  TMonitor monitor;
  monitor.Add(&server);
  std::vector<std::unique_ptr<TSocket>> sockets;
  for (int received = 0; received < kWorkers * kMessages;) {
    TSocket* const ready = monitor.Select();
    ASSERT_NE(ready, nullptr);
    if (ready->IsA() == TServerSocket::Class()) {
      sockets.emplace_back(static_cast<TServerSocket*>(ready)->Accept());
      ASSERT_NE(sockets.back(), nullptr);
      EXPECT_LT(sockets.back()->GetDescriptor(), FD_SETSIZE);
      monitor.Add(sockets.back().get());
      continue;
    }
    Int_t value = -1;
    Int_t kind = -1;
    EXPECT_GT(ready->Recv(value, kind), 0);
    ++received;
    if (value == kMessages - 1) {
      EXPECT_GT(ready->Send(0, 0), 0);
    }
  }
  workers.join();
  EXPECT_EQ(sockets.size(), static_cast<std::size_t>(kWorkers));
}

TEST_F(Scif, SaysThatThereAreTooManyForAMonitor) {
  if (!can_open(kOpenFiles)) GTEST_SKIP() << "so many files cannot be opened here";
  std::vector<wherry::UniqueFd> low;
  do low.emplace_back(::dup(STDERR_FILENO));
  while (low.back().get() < FD_SETSIZE);
  testing::internal::CaptureStderr();
  EXPECT_GE(accepted->GetDescriptor(), FD_SETSIZE);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("too many sockets"), std::string::npos);
}

}  // namespace
