// SPDX-License-Identifier: Apache-2.0
// The rendezvous between two network namespaces: cut links, hosts that do not answer, paths that drop large packets,
// names with an address that does not work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include <wherry/mailbox.hpp>
#include <wherry/stream.hpp>

#include "base/child_process.hpp"
#include "base/key_file.hpp"
#include "base/scoped_environment.hpp"
#include "base/two_hosts.hpp"
#include "fabric/ofi/rendezvous.hpp"
#include "fabric/ofi/rendezvous_fixture.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry::fabric::ofi {
namespace {

using std::chrono::milliseconds;

constexpr std::uint16_t kNode = 5;
constexpr std::uint16_t kPort = 80;
constexpr const char* kFar = "10.98.0.2";

/// Moves this process to host 0. Both hosts have an address of IPv6, too.
void join(std::optional<TwoHosts>& hosts) {
  hosts.emplace();
  hosts->enter(0);
  for (const std::uint32_t host : {0U, 1U}) {
    const std::string address = "2001:db8::" + std::to_string(host + 1);
    if (!hosts->ip(host, "addr add " + address + "/64 nodad dev " + TwoHosts::interface(host))) {
      throw std::runtime_error("this kernel has no IPv6");
    }
  }
}

/// Gives this process a mount namespace, in which the mounts of others do not change.
bool own_mounts() {
  return ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

/// Replaces a file for the processes of this mount namespace.
bool replace_file(const char* path, const std::string& lines) {
  std::string file = "/tmp/wherry-hosts-XXXXXX";
  const UniqueFd made(::mkstemp(file.data()));
  std::ofstream(file) << lines;
  const bool is_set = ::mount(file.c_str(), path, nullptr, MS_BIND, nullptr) == 0;
  ::unlink(file.c_str());
  return is_set;
}

/// Sets the lines of /etc/hosts for this process.
bool set_hosts(const std::string& lines) { return own_mounts() && replace_file("/etc/hosts", lines); }

/// Makes every name but those of /etc/hosts unknown for minutes: the resolver asks a host that does not answer.
bool lose_names(TwoHosts& hosts) {
  return hosts.ip(1, "route add blackhole 10.98.0.1/32") && own_mounts() &&
         replace_file("/etc/nsswitch.conf", "hosts: files dns\n") &&
         replace_file("/etc/resolv.conf", "nameserver 10.98.0.2\noptions timeout:30 attempts:5\n");
}

/// Runs a test in a separate process, in two namespaces. Skips the test if they cannot be created.
void between_hosts(const std::function<bool(TwoHosts&)>& test) {
  constexpr int kRefused = 77;
  Child process([&] {
    std::optional<TwoHosts> hosts;
    try {
      join(hosts);
    } catch (const std::runtime_error& refused) {
      std::fprintf(stderr, "%s\n", refused.what());
      std::_Exit(kRefused);
    }
    return test(*hosts);
  });
  const int status = process.wait();
  if (status == kRefused) GTEST_SKIP() << "two hosts cannot be made";
  EXPECT_EQ(status, 0);
}

bool is_true(bool condition, const char* what) {
  if (!condition) std::fprintf(stderr, "not so: %s\n", what);
  return condition;
}

#define WHERRY_REQUIRE(condition) \
  if (!is_true(condition, #condition)) return false

Settings settings_for(milliseconds host_timeout) {
  Settings settings = test_settings();
  settings.host_timeout = host_timeout;
  return settings;
}

RendezvousListener far_listener(TwoHosts& hosts, const Settings& settings) {
  std::optional<RendezvousListener> listener;
  hosts.visit_far([&] { listener.emplace(settings, kNode, kPort); });
  return std::move(*listener);
}

RendezvousConnector near_connector(const Settings& settings, const std::string& host,
                                   const Deadline& until = std::nullopt) {
  return {settings, host, kNode, kPort, test_introduction("c"), until};
}

bool ends(const Meeting& meeting, milliseconds within) {
  pollfd polled{.fd = meeting.socket.get(), .events = POLLIN, .revents = 0};
  return ::poll(&polled, 1, static_cast<int>(within.count())) > 0;
}

constexpr milliseconds kEver{-1};

bool fails_with(RendezvousListener* listener, RendezvousConnector connector, int error, const std::string& text) {
  const Error failure = failure_of(listener, connector);
  const bool is_right = failure.code().value() == error && std::string(failure.what()).find(text) != std::string::npos;
  if (!is_right) std::fprintf(stderr, "%s\n", failure.what());
  return is_right;
}

TEST(TwoHosts, ACutThatHealsIsNoDeathAndOneThatDoesNotIsBothSides) {
  between_hosts([](TwoHosts& hosts) {
    const Settings settings = settings_for(milliseconds(2000));
    RendezvousListener listener = far_listener(hosts, settings);
    RendezvousConnector connector = near_connector(settings, kFar);
    const BothEnds both = meet(listener, connector);
    WHERRY_REQUIRE(both.connector->local.to_string().starts_with("10.98.0.1:"));
    WHERRY_REQUIRE(hosts.ip(1, "link set far0 down"));
    std::this_thread::sleep_for(milliseconds(500));
    WHERRY_REQUIRE(hosts.ip(1, "link set far0 up"));
    WHERRY_REQUIRE(!ends(*both.connector, milliseconds(2500)));
    WHERRY_REQUIRE(!ends(*both.listener, milliseconds(0)));
    WHERRY_REQUIRE(hosts.ip(1, "link set far0 down"));
    return ends(*both.connector, kEver) && ends(*both.listener, kEver);
  });
}

TEST(TwoHosts, APeerThatIsStoppedLivesAndOneThatIsKilledDoesNot) {
  between_hosts([](TwoHosts& hosts) {
    const Settings settings = settings_for(milliseconds(1000));
    RendezvousListener listener = far_listener(hosts, settings);
    Child peer([&] {
      BothEnds ends;
      drive(&listener, nullptr, nullptr, [&] { return listener.visitor() != nullptr; });
      const auto meeting = listener.accept(test_introduction("l"));
      ::pause();
      return true;
    });
    RendezvousConnector connector = near_connector(settings, kFar);
    std::optional<Meeting> meeting;
    drive(nullptr, &connector, &meeting, [&] { return meeting.has_value(); });
    listener = far_listener(hosts, settings_for(milliseconds(1000)));  // this process's copy would outlive the peer
    ::kill(peer.pid(), SIGSTOP);
    WHERRY_REQUIRE(!ends(*meeting, milliseconds(2500)));
    ::kill(peer.pid(), SIGKILL);
    return ends(*meeting, kEver);
  });
}

TEST(TwoHosts, AHostThatDropsEverythingIsNamedInTime) {
  between_hosts([](TwoHosts& hosts) {
    Settings settings = settings_for(milliseconds(300));
    RendezvousListener listener = far_listener(hosts, settings);
    WHERRY_REQUIRE(hosts.ip(1, "route add blackhole 10.98.0.1/32"));
    const std::string text = ":" + std::to_string(listener.tcp_port()) + " did not answer: a firewall drops it? ";
    WHERRY_REQUIRE(fails_with(&listener, near_connector(settings, kFar), ETIMEDOUT, kFar + text));
    settings.host_timeout = milliseconds(600'000);
    const auto until = Timer::Clock::now() + milliseconds(300);
    return fails_with(&listener, near_connector(settings, kFar, until), ETIMEDOUT, text);
  });
}

TEST(TwoHosts, AHostWithoutARouteIsNamed) {
  between_hosts([](TwoHosts&) {
    return fails_with(nullptr, near_connector(settings_for(milliseconds(300)), "192.0.2.1"), ENETUNREACH,
                      "192.0.2.1:") &&
           fails_with(nullptr, near_connector(settings_for(milliseconds(300)), "192.0.2.1"), ENETUNREACH,
                      "cannot be reached; correct its address in WHERRY_HOSTS, or the route to it");
  });
}

/// The kernel may give a connection to a port of this host that very port, and join it with itself.
TEST(TwoHosts, AConnectionWithItselfIsNoListener) {
  between_hosts([](TwoHosts&) {
    Settings settings = settings_for(milliseconds(600'000));
    settings.ports = {20001, 20001};
    std::ofstream ports("/proc/sys/net/ipv4/ip_local_port_range");
    if (!(ports << "20001 20001" << std::flush)) return true;  // not in this container
    return fails_with(nullptr, near_connector(settings, "127.0.0.1"), ECONNREFUSED, "nobody listens there");
  });
}

TEST(TwoHosts, APathThatCarriesSmallPacketsOnlyShowsWhileConnecting) {
  between_hosts([](TwoHosts& hosts) {
    const Settings settings = settings_for(milliseconds(500));
    RendezvousListener listener = far_listener(hosts, settings);
    WHERRY_REQUIRE(hosts.ip(0, "link set near0 gso_max_segs 1"));  // as on a wire
    WHERRY_REQUIRE(hosts.ip(1, "link set far0 mtu 1300"));
    WHERRY_REQUIRE(hosts.ip(1, "route change 10.98.0.0/24 dev far0 src 10.98.0.2 advmss 1460"));
    return fails_with(&listener, near_connector(settings, kFar), ETIMEDOUT, "path MTU?");
  });
}

TEST(TwoHosts, AnAddressThatDoesNotWorkIsPassedBy) {
  between_hosts([](TwoHosts& hosts) {
    const Settings settings = settings_for(milliseconds(600'000));
    RendezvousListener listener = far_listener(hosts, settings);
    WHERRY_REQUIRE(set_hosts("2001:db8::2 far\n10.98.0.2 far\n"));
    // The kernel takes a moment to see the cable; until then the other address is taken.
    for (int family = AF_INET; family != AF_INET6;) {
      RendezvousConnector first = near_connector(settings, "far");
      family = meet(listener, first).connector->remote.family();
    }
    WHERRY_REQUIRE(hosts.ip(1, "-6 route add blackhole 2001:db8::1/128"));
    RendezvousConnector second = near_connector(settings, "far");
    WHERRY_REQUIRE(meet(listener, second).connector->remote.family() == AF_INET);
    WHERRY_REQUIRE(hosts.ip(1, "-6 route del blackhole 2001:db8::1/128"));
    WHERRY_REQUIRE(hosts.ip(1, "addr del 10.98.0.2/24 dev far0"));
    RendezvousConnector third = near_connector(settings, "far");
    return meet(listener, third).connector->remote.family() == AF_INET6;
  });
}

/// One attempt ends although the other address does not answer: its caller asks again, as the listener may come up.
TEST(TwoHosts, NobodyListensAtTheAddressThatWorks) {
  between_hosts([](TwoHosts& hosts) {
    WHERRY_REQUIRE(set_hosts("2001:db8::2 far\n10.98.0.2 far\n"));
    WHERRY_REQUIRE(hosts.ip(1, "-6 route add blackhole 2001:db8::1/128"));
    return fails_with(nullptr, near_connector(settings_for(milliseconds(600'000)), "far"), ECONNREFUSED,
                      "nobody listens there");
  });
}

TEST(TwoHosts, ASearchThatIsGivenUpSaysWhatItWaitedFor) {
  between_hosts([](TwoHosts& hosts) {
    WHERRY_REQUIRE(hosts.ip(1, "route add blackhole 10.98.0.1/32"));
    RendezvousConnector connector = near_connector(settings_for(milliseconds(600'000)), kFar);
    try {
      connector.give_up();
    } catch (const Error& error) {
      return error.code().value() == ETIMEDOUT &&
             std::string(error.what()).find("did not answer: a firewall drops it?") != std::string::npos;
    }
  });
}

/// The resolver would take longer than the watchdog.
TEST(TwoHosts, AResolverThatDoesNotAnswerDelaysNoCaller) {
  between_hosts([](TwoHosts& hosts) {
    WHERRY_REQUIRE(lose_names(hosts));
    const std::string text = "the resolver does not answer; correct /etc/resolv.conf, or name the host in /etc/hosts";
    RendezvousConnector connector = near_connector(settings_for(milliseconds(600'000)), "somewhere");
    WHERRY_REQUIRE(!connector.advance() && connector.waits_for_listener());
    WHERRY_REQUIRE(connector.obstacle() == text);
    const auto until = Timer::Clock::now() + milliseconds(50);
    return fails_with(nullptr, near_connector(settings_for(milliseconds(600'000)), "somewhere", until), ETIMEDOUT,
                      text + "; waited");
  });
}

/// Its silence lasts longer than the watchdog, and would be waited for as long.
TEST(TwoHosts, AHostThatDoesNotAnswerDelaysNoCaller) {
  between_hosts([](TwoHosts& hosts) {
    WHERRY_REQUIRE(hosts.ip(1, "route add blackhole 10.98.0.1/32"));
    const test::TemporaryDirectory directory;
    const std::string file = directory.path() / "hosts", key = directory.path() / "key";
    std::ofstream(file) << "127.0.0.1\n" << kFar << "\n";
    make_key_file(key);
    const ScopedEnvironment hosts_file("WHERRY_HOSTS", file.c_str()), key_file("WHERRY_KEY", key.c_str()),
        node("WHERRY_NODE", "0"), host_timeout("WHERRY_HOST_TIMEOUT", "600000"),
        connect_timeout("WHERRY_CONNECT_TIMEOUT", "600000");
    Connecting connecting = start_connect("wherry+ofi://1:80");
    WHERRY_REQUIRE(!connecting.try_finish());
    Mailbox mailbox;
    const Mailbox::Peer peer = mailbox.connect("wherry+ofi://1:80");
    const std::array<std::byte, 1> message{};
    WHERRY_REQUIRE(mailbox.try_send(peer, message).would_block());
    try {
      (void)connect("wherry+ofi://1:80", {}, std::chrono::nanoseconds(0));
      return false;
    } catch (const Error& error) {
      const bool names_port = std::string(error.what()).find("10.98.0.2:4") != std::string::npos;
      return is_true(error.code().value() == ETIMEDOUT && names_port, error.what());
    }
  });
}

TEST(TwoHosts, AListenerThatComesLaterIsFoundBesideAnAddressThatDoesNotWork) {
  between_hosts([](TwoHosts& hosts) {
    const Settings settings = settings_for(milliseconds(600'000));
    WHERRY_REQUIRE(set_hosts("2001:db8::2 far\n10.98.0.2 far\n"));
    WHERRY_REQUIRE(hosts.ip(1, "-6 route add blackhole 2001:db8::1/128"));
    RendezvousConnector connector = near_connector(settings, "far", seconds_from_now(1000));
    std::optional<Meeting> none;
    int calls = 0;
    drive(nullptr, &connector, &none, [&] { return ++calls > 100; });  // the other address has refused by then
    RendezvousListener listener = far_listener(hosts, settings);
    return meet(listener, connector).connector->remote.family() == AF_INET;
  });
}

}  // namespace
}  // namespace wherry::fabric::ofi
