// SPDX-License-Identifier: Apache-2.0
// The choice of the fabric for a node, and one port on two fabrics. In these tests inproc stands for shm, and
// inproc-put for ofi.
#include "fabric/hosts/hosts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <wherry/error.hpp>

#include "base/scoped_environment.hpp"

namespace wherry::fabric::hosts {
namespace {

const Offer kOffer{.segment_bytes = 4096};
const Address kAnyPort{.fabric = "", .node = 0, .port = std::nullopt};

Fabric& near() { return find("inproc"); }
Fabric& far() { return find("inproc-put"); }

/// A fabric on which every port is taken, or every accept fails.
class BrokenFabric final : public Fabric {
 public:
  explicit BrokenFabric(bool listens) : listens_(listens) {}
  [[nodiscard]] std::string_view name() const override { return "broken"; }
  std::unique_ptr<Listener> listen(const Address& address) override {
    if (!listens_) throw Error(EADDRINUSE, "listen", address.to_string(), "");
    return std::make_unique<BrokenListener>(far().listen(kAnyPort), address);
  }
  std::unique_ptr<Connecting> connect(const Address&, const Offer&) override { return nullptr; }

 private:
  class BrokenListener final : public Listener {
   public:
    BrokenListener(std::unique_ptr<Listener> inner, Address local)
        : inner_(std::move(inner)), local_(std::move(local)) {}
    std::unique_ptr<Connection> try_accept(const Offer&) override { throw Error(EMFILE, "accept", "", ""); }
    [[nodiscard]] int descriptor() const override { return inner_->descriptor(); }
    [[nodiscard]] const Address& local() const override { return local_; }

   private:
    std::unique_ptr<Listener> inner_;
    Address local_;
  };

  bool listens_;
};

/// inproc, whose first free port is one of the last.
class LatePorts final : public Fabric {
 public:
  [[nodiscard]] std::string_view name() const override { return "inproc"; }
  std::unique_ptr<Listener> listen(const Address& address) override {
    Address late = address;
    if (!late.port) late.port = 65500;
    return near().listen(late);
  }
  std::unique_ptr<Connecting> connect(const Address&, const Offer&) override { return nullptr; }
};

class HostsTest : public ::testing::Test {
 protected:
  HostsTest() { write("127.0.0.1\n198.51.100.1\n2 127.0.0.1\n"); }
  ~HostsTest() override { ::unlink(file_.name.c_str()); }

  void write(const std::string& text) const { std::ofstream(file_.name) << text; }
  /// The address of the listener's port as that node sees it.
  static Address of(const Listener& listener) { return listener.local(); }
  std::unique_ptr<Connecting> from_node(const char* node, const Address& address) {
    const ScopedEnvironment own("WHERRY_NODE", node);
    return fabric_.connect(address, kOffer);
  }

  struct File {
    std::string name = "/tmp/wherry-hosts-XXXXXX";
    File() { ::close(::mkstemp(name.data())); }
  };
  File file_;
  ScopedEnvironment hosts_{"WHERRY_HOSTS", file_.name.c_str()};
  ScopedEnvironment node_{"WHERRY_NODE", "0"};
  HostsFabric fabric_{near, far};
};

bool is_readable(const Listener& listener) {
  pollfd polled{.fd = listener.descriptor(), .events = POLLIN, .revents = 0};
  return ::poll(&polled, 1, 0) == 1;
}

Error error_of(const std::function<void()>& what) {
  try {
    what();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return {0, "", "", ""};
}

TEST_F(HostsTest, ANodeOfTheSameHostIsReachedHereAndOneOfAnotherElsewhere) {
  const auto listener = fabric_.listen(kAnyPort);
  EXPECT_EQ(listener->local().fabric, "");
  EXPECT_EQ(listener->local().node, 0);
  for (const auto& [node, name] : {std::pair{"0", "inproc"}, {"2", "inproc"}, {"1", "inproc-put"}}) {
    const auto connecting = from_node(node, of(*listener));
    const auto accepted = listener->try_accept(kOffer);
    ASSERT_NE(accepted, nullptr) << "node " << node;
    EXPECT_EQ(fabric_.name_of(*accepted), name);
    const auto connected = connecting->try_finish();
    ASSERT_NE(connected, nullptr);
    EXPECT_EQ(fabric_.name_of(*connected), name);
    EXPECT_EQ(connected->map() != nullptr, std::string(name) == "inproc");
  }
}

TEST_F(HostsTest, TheDescriptorIsReadableWhileAConnectorWaitsOnEither) {
  const auto listener = fabric_.listen(kAnyPort);
  for (const char* node : {"2", "1"}) {
    EXPECT_FALSE(is_readable(*listener));
    const auto connecting = from_node(node, of(*listener));
    EXPECT_TRUE(is_readable(*listener));
    EXPECT_NE(listener->try_accept(kOffer), nullptr);
  }
  EXPECT_FALSE(is_readable(*listener));
  EXPECT_EQ(listener->try_accept(kOffer), nullptr);
}

TEST_F(HostsTest, BothAreAcceptedFromInTurn) {
  const auto listener = fabric_.listen(kAnyPort);
  for (const char* many : {"2", "1"}) {
    std::vector<std::unique_ptr<Connecting>> connectors;
    for (int i = 0; i < 4; ++i) connectors.push_back(from_node(many, of(*listener)));
    connectors.push_back(from_node(std::string_view(many) == "1" ? "2" : "1", of(*listener)));
    int others = 0;
    for (int i = 0; i < 2; ++i) {
      const auto accepted = listener->try_accept(kOffer);
      ASSERT_NE(accepted, nullptr);
      others += (fabric_.name_of(*accepted) == "inproc") == (std::string_view(many) == "1") ? 1 : 0;
    }
    EXPECT_EQ(others, 1) << "beside many of node " << many;
    while (listener->try_accept(kOffer) != nullptr) continue;
  }
}

TEST_F(HostsTest, OneThatCannotAcceptDoesNotKeepTheOtherFromIt) {
  BrokenFabric broken(true);
  HostsFabric fabric([&]() -> Fabric& { return broken; }, far);
  const Address address{.fabric = "", .node = 0, .port = 4711};
  const auto listener = fabric.listen(address);
  const auto connecting = from_node("1", address);
  int failures = 0;
  std::unique_ptr<Connection> accepted;
  for (int i = 0; i < 2 && accepted == nullptr; ++i) {
    try {
      accepted = listener->try_accept(kOffer);
    } catch (const Error&) {
      ++failures;
    }
  }
  EXPECT_NE(accepted, nullptr);
  EXPECT_LE(failures, 1);
}

TEST_F(HostsTest, ClosingClosesBothAndRefusesWhoWaits) {
  auto listener = fabric_.listen(kAnyPort);
  const Address address = of(*listener);
  std::vector<std::unique_ptr<Connecting>> waiting;
  for (const char* node : {"2", "1"}) waiting.push_back(from_node(node, address));
  listener.reset();
  for (const auto& each : waiting) {
    EXPECT_EQ(error_of([&] { (void)each->try_finish(); }).code().value(), ECONNREFUSED);
  }
  for (const char* node : {"2", "1"}) {
    EXPECT_EQ(error_of([&] { (void)from_node(node, address); }).code().value(), ECONNREFUSED);
  }
  EXPECT_EQ(fabric_.listen(address)->local(), address);
}

TEST_F(HostsTest, AFreePortIsFreeOnBoth) {
  const auto here = near().listen(kAnyPort);
  std::vector<std::unique_ptr<Listener>> taken;
  for (std::uint16_t i = 1; i < 4; ++i) {
    Address next = here->local();
    next.port = static_cast<std::uint16_t>(*next.port + i);
    taken.push_back(far().listen(next));
  }
  const auto listener = fabric_.listen(kAnyPort);
  EXPECT_EQ(*listener->local().port, *here->local().port + 4);
}

TEST_F(HostsTest, APortThatIsTakenElsewhereIsRefusedAndNotKeptHere) {
  const auto taken = far().listen(kAnyPort);
  Address address = taken->local();
  address.fabric.clear();
  EXPECT_EQ(error_of([&] { (void)fabric_.listen(address); }).code().value(), EADDRINUSE);
  EXPECT_NO_THROW((void)near().listen(address));
  LatePorts late;
  BrokenFabric broken(false);
  HostsFabric fabric([&]() -> Fabric& { return late; }, [&]() -> Fabric& { return broken; });
  const Error error = error_of([&] { (void)fabric.listen(kAnyPort); });
  EXPECT_EQ(error.code().value(), EADDRINUSE);
  EXPECT_EQ(error.advice(), "no port is free on both fabrics; stop a listener");
}

TEST_F(HostsTest, ANodeWithoutAHostIsAnErrorAtOnce) {
  const Error error = error_of([&] { (void)fabric_.connect(Address{.fabric = "", .node = 9, .port = 4711}, kOffer); });
  EXPECT_EQ(error.code().value(), EHOSTUNREACH);
  EXPECT_EQ(error.advice(), file_.name + " (WHERRY_HOSTS) has no line for node 9; add it, on all hosts");
}

TEST_F(HostsTest, WhatIsWrongWithTheFileIsSaidWithItsLine) {
  write("127.0.0.1\nal/pha\n");
  EXPECT_EQ(error_of([&] { (void)fabric_.listen(kAnyPort); }).address(), file_.name + ":2");
  ::unlink(file_.name.c_str());
  EXPECT_EQ(error_of([&] { (void)fabric_.listen(kAnyPort); }).code().value(), ENOENT);
}

TEST_F(HostsTest, WhereAllNodesAreOnThisHostTheOtherFabricIsNeverAskedFor) {
  write("127.0.0.1\n2 127.0.0.1\n");
  HostsFabric fabric(near, []() -> Fabric& { throw Error(ENOTSUP, "load", "", "it was asked for"); });
  const auto listener = fabric.listen(kAnyPort);
  EXPECT_EQ(listener->local().fabric, "");
  const auto connecting = fabric.connect(of(*listener), kOffer);
  EXPECT_TRUE(is_readable(*listener));
  EXPECT_NE(listener->try_accept(kOffer), nullptr);
  write("127.0.0.1\n198.51.100.1\n");
  EXPECT_EQ(error_of([&] { (void)fabric.listen(kAnyPort); }).advice(), "it was asked for");
}

TEST_F(HostsTest, MemoryIsNotSharedWithOtherHosts) {
  const Error error = error_of([&] { (void)fabric_.share(4096); });
  EXPECT_EQ(error.code().value(), ENOTSUP);
  EXPECT_EQ(error.advice(),
            "peers on other hosts cannot map it; use wherry+shm:// for processes of this machine, or a stream");
}

}  // namespace
}  // namespace wherry::fabric::hosts
