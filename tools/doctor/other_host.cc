// SPDX-License-Identifier: Apache-2.0
//
// The checks of another host: its addresses, the route, the ports that answer, and the versions of its listeners.
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <wherry/error.hpp>

#include "base/config.hpp"
#include "base/port_range.hpp"
#include "base/printable.hpp"
#include "base/readable.hpp"
#include "base/unique_fd.hpp"
#include "doctor/network.hpp"
#include "fabric/ofi/layout/rendezvous_messages.hpp"

namespace wherry::tools::doctor {
namespace {

using std::chrono::steady_clock;

/// Long enough for one lost SYN.
constexpr auto kAnswerTime = std::chrono::seconds(2);
constexpr std::size_t kMostTried = 256;
constexpr std::size_t kMostAsked = 8;
constexpr int kLeastMtu = 1280;  // of IPv6

struct HostAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] HostAddress with_port(std::uint16_t port) const {
    HostAddress changed = *this;
    // Both families have the port in the same place.
    const std::uint16_t number = htons(port);
    static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
    std::memcpy(reinterpret_cast<char*>(&changed.storage) + offsetof(sockaddr_in, sin_port), &number, sizeof number);
    return changed;
  }
  [[nodiscard]] std::string to_string() const {
    std::array<char, NI_MAXHOST> text{};
    const int error = ::getnameinfo(get(), length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
    return error == 0 ? text.data() : "?";
  }
  [[nodiscard]] bool is_loopback() const {
    const std::string text = to_string();
    return text.starts_with("127.") || text == "::1";
  }
};

std::vector<HostAddress> addresses_of(const std::string& host, std::string& failure) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    failure = error == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(error);
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, ::freeaddrinfo);
  std::vector<HostAddress> addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (each->ai_family != AF_INET && each->ai_family != AF_INET6) continue;
    HostAddress& address = addresses.emplace_back();
    address.length = each->ai_addrlen;
    std::memcpy(&address.storage, each->ai_addr, each->ai_addrlen);
  }
  if (addresses.empty()) failure = "no IPv4 or IPv6 address";
  return addresses;
}

Finding check_names(const std::string& host, const std::vector<HostAddress>& addresses, const std::string& failure) {
  if (addresses.empty()) {
    return {Verdict::fail, printable(host) + ": " + failure,
            "correct its line in WHERRY_HOSTS or /etc/hosts, or use its address"};
  }
  std::string found;
  for (const HostAddress& each : addresses) found += (found.empty() ? "" : ", ") + each.to_string();
  if (addresses.front().is_loopback()) {
    return {
        Verdict::fail, found,
        "that is this host itself: write an address that other hosts reach into WHERRY_HOSTS, or correct /etc/hosts"};
  }
  return {Verdict::ok, found, ""};
}

std::string interface_of(const HostAddress& own) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return "?";
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(all, ::freeifaddrs);
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != own.storage.ss_family) continue;
    HostAddress address;
    address.length = own.length;
    std::memcpy(&address.storage, each->ifa_addr, own.length);
    if (address.to_string() == own.to_string()) return each->ifa_name;
  }
  return "?";
}

/// The route to an address. Sends no packet: connect() of a datagram socket only selects the route.
struct Route {
  int error = 0;
  HostAddress own;
  int mtu = 0;

  explicit Route(const HostAddress& to) {
    const UniqueFd fd(::socket(to.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const HostAddress there = to.with_port(9);
    if (!fd.valid() || ::connect(fd.get(), there.get(), there.length) != 0) {
      error = errno;
      return;
    }
    own.length = sizeof own.storage;
    (void)::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own.storage), &own.length);
    const bool is_ipv6 = to.storage.ss_family == AF_INET6;
    socklen_t length = sizeof mtu;
    (void)::getsockopt(fd.get(), is_ipv6 ? int{IPPROTO_IPV6} : int{IPPROTO_IP}, is_ipv6 ? IPV6_MTU : IP_MTU, &mtu,
                       &length);
  }
};

Finding check_route(const Route& route) {
  if (route.error != 0) {
    return {Verdict::fail, std::strerror(route.error),
            "correct its address in WHERRY_HOSTS, or add a route to it: ip route get ADDRESS"};
  }
  return {Verdict::ok, fmt::format("from {} on {}", route.own.to_string(), interface_of(route.own)), ""};
}

Finding check_mtu(const Route& route) {
  const std::string found = fmt::format("{} bytes", route.mtu);
  if (route.mtu >= kLeastMtu) return {Verdict::ok, found, ""};
  return {Verdict::fail, found, "large transfers are slow in small packets: raise the interface's MTU"};
}

/// The results of connecting to some ports of a host.
struct Answers {
  std::size_t tried = 0;
  std::size_t listening = 0;
  std::size_t refused = 0;
  std::size_t dropped = 0;      ///< no answer
  std::map<int, int> rejected;  ///< by errno value
  std::vector<UniqueFd> open;   ///< some of the connected sockets
};

class Probe {
 public:
  Probe(const HostAddress& host, PortRange range) {
    rlimit files{};
    (void)::getrlimit(RLIMIT_NOFILE, &files);
    const std::size_t most = std::min({kMostTried, std::size_t{range.size()}, std::size_t{files.rlim_cur / 2}});
    for (std::size_t i = 0; i < most; ++i) {
      const std::size_t step = most == 1 ? 0 : i * (range.size() - 1) / (most - 1);
      begin(host.with_port(static_cast<std::uint16_t>(range.first + step)));
    }
  }

  Answers wait() {
    const auto until = steady_clock::now() + kAnswerTime;
    while (!polled_.empty()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()).count();
      if (left <= 0 || ::poll(polled_.data(), polled_.size(), static_cast<int>(left)) <= 0) break;
      for (std::size_t i = polled_.size(); i-- > 0;) {
        if (polled_[i].revents != 0) end(i);
      }
    }
    answers_.dropped += polled_.size();
    return std::move(answers_);
  }

 private:
  void begin(const HostAddress& address) {
    UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd.valid()) return;
    ++answers_.tried;
    const bool is_done = ::connect(fd.get(), address.get(), address.length) == 0;
    if (!is_done && errno != EINPROGRESS) return note(errno, std::move(fd));
    polled_.push_back({.fd = fd.get(), .events = POLLOUT, .revents = 0});
    sockets_.push_back(std::move(fd));
  }

  void end(std::size_t index) {
    int error = 0;
    socklen_t length = sizeof error;
    (void)::getsockopt(sockets_[index].get(), SOL_SOCKET, SO_ERROR, &error, &length);
    note(error, std::move(sockets_[index]));
    sockets_.erase(sockets_.begin() + static_cast<std::ptrdiff_t>(index));
    polled_.erase(polled_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  void note(int error, UniqueFd socket) {
    if (error == 0) {
      ++answers_.listening;
      if (answers_.open.size() < kMostAsked) answers_.open.push_back(std::move(socket));
    } else if (error == ECONNREFUSED || error == ECONNRESET) {
      ++answers_.refused;
    } else if (error == ETIMEDOUT) {
      ++answers_.dropped;
    } else {
      ++answers_.rejected[error];
    }
  }

  std::vector<pollfd> polled_;
  std::vector<UniqueFd> sockets_;
  Answers answers_;
};

Finding check_ports(const Answers& answers, PortRange range) {
  const std::size_t passed = answers.listening + answers.refused;
  std::string found = fmt::format("of {} tried of {}, {} answer, {} of them listened on", answers.tried,
                                  range.to_string(), passed, answers.listening);
  for (const auto& [error, times] : answers.rejected) found += fmt::format("; {}: {}", times, std::strerror(error));
  if (answers.dropped > 0) found += fmt::format("; {} do not answer", answers.dropped);
  if (answers.tried > 0 && passed == answers.tried) return {Verdict::ok, found, ""};
  if (passed > 0) return {Verdict::fail, found, "its firewall drops some: let in all TCP ports of WHERRY_PORTS there"};
  return {Verdict::fail, found,
          "the host is down, its address is wrong, or a firewall drops it: let in the TCP ports of WHERRY_PORTS there"};
}

/// Asks for job 0, node 0 and port 0. A Wherry listener refuses, and its answer has its version. Empty: not a Wherry
/// listener.
std::optional<std::uint32_t> version_of(const UniqueFd& socket) {
  namespace layout = fabric::ofi::layout;
  const layout::Question question{.version = layout::kRendezvousVersion,
                                  .magic = layout::kRendezvousMagic,
                                  .job = 0,
                                  .node = 0,
                                  .port = 0,
                                  .zero = 0,
                                  .nonce = {}};
  if (::send(socket.get(), &question, sizeof question, MSG_NOSIGNAL) != sizeof question) return std::nullopt;
  layout::Answer answer{};
  std::size_t received = 0;
  while (received < sizeof answer) {
    pollfd polled{.fd = socket.get(), .events = POLLIN, .revents = 0};
    constexpr int kMilliseconds = 500;
    if (::poll(&polled, 1, kMilliseconds) != 1) return std::nullopt;
    const ssize_t bytes =
        ::recv(socket.get(), reinterpret_cast<char*>(&answer) + received, sizeof answer - received, 0);
    if (bytes <= 0) return std::nullopt;
    received += static_cast<std::size_t>(bytes);
  }
  return answer.magic == layout::kRendezvousMagic ? std::optional(answer.version) : std::nullopt;
}

Finding check_versions(const Answers& answers) {
  constexpr std::uint32_t kOwn = fabric::ofi::layout::kRendezvousVersion;
  for (const UniqueFd& socket : answers.open) {
    const auto version = version_of(socket);
    if (!version) continue;
    const std::string found = fmt::format("a listener there speaks rendezvous {}", *version);
    if (*version == kOwn) return {Verdict::ok, found, ""};
    return {Verdict::fail, fmt::format("{}, and this Wherry {}", found, kOwn), "install the same Wherry on both hosts"};
  }
  return {Verdict::ok, "no Wherry listener there answered with its version", ""};
}

}  // namespace

std::vector<NamedFinding> check_other_host(const std::string& host) {
  std::vector<NamedFinding> findings;
  std::string failure;
  const std::vector<HostAddress> addresses = addresses_of(host, failure);
  findings.push_back({"names", check_names(host, addresses, failure)});
  if (addresses.empty()) return findings;
  // A connect tries the other addresses only if the first fails.
  const HostAddress& address = addresses.front();
  const Route route(address);
  findings.push_back({"route", check_route(route)});
  if (route.error != 0) return findings;
  findings.push_back({"MTU", check_mtu(route)});
  try {
    const auto range = *PortRange::parse(config::word(config::Key::ports));
    const Answers answers = Probe(address, range).wait();
    findings.push_back({"ports", check_ports(answers, range)});
    if (answers.listening > 0) findings.push_back({"versions", check_versions(answers)});
  } catch (const Error& error) {
    findings.push_back({"ports", {Verdict::fail, printable(error.what()), "correct WHERRY_PORTS"}});
  }
  return findings;
}

}  // namespace wherry::tools::doctor
