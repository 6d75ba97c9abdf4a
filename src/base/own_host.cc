// SPDX-License-Identifier: Apache-2.0
#include "base/own_host.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include <wherry/address.hpp>
#include <wherry/error.hpp>

#include "base/config.hpp"
#include "base/found_once.hpp"

namespace wherry {
namespace {

constexpr std::size_t kIpv4Bytes = 4;
constexpr std::size_t kIpv6Bytes = 16;
/// Limit for all names of the file together. A single name whose servers do not answer takes about as long.
constexpr auto kMostLookUp = std::chrono::seconds(5);

std::string bytes_of(const void* address, std::size_t bytes) { return {static_cast<const char*>(address), bytes}; }

/// Returns the bytes of an address; empty if it is neither IPv4 nor IPv6. An IPv4-mapped IPv6 address (::ffff:1.2.3.4)
/// becomes IPv4.
std::string bytes_of(const sockaddr* address) {
  if (address != nullptr && address->sa_family == AF_INET) {
    sockaddr_in ipv4{};
    std::memcpy(&ipv4, address, sizeof ipv4);
    return bytes_of(&ipv4.sin_addr, kIpv4Bytes);
  }
  if (address == nullptr || address->sa_family != AF_INET6) return {};
  sockaddr_in6 ipv6{};
  std::memcpy(&ipv6, address, sizeof ipv6);
  const std::string all = bytes_of(&ipv6.sin6_addr, kIpv6Bytes);
  return IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr) ? all.substr(kIpv6Bytes - kIpv4Bytes) : all;
}

bool is_loopback(const std::string& address) {
  if (address.size() == kIpv4Bytes) return address.front() == 127;
  return address == bytes_of(&in6addr_loopback, kIpv6Bytes);
}

/// Returns the addresses of a host. With AI_NUMERICHOST in `flags` the resolver is not used.
std::vector<std::string> addresses_of(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, ::freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (auto address = bytes_of(each->ai_addr); !address.empty()) addresses.push_back(std::move(address));
  }
  return addresses;
}

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }

bool is_same_name(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, {}, lower, lower);
}

std::string_view first_label(std::string_view name) { return name.substr(0, name.find('.')); }

std::string list_of(const std::vector<std::uint16_t>& nodes) {
  constexpr std::size_t kMostListed = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(nodes.size(), kMostListed); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(nodes[i]);
  }
  return nodes.size() > kMostListed ? text + ", ..." : text;
}

std::uint16_t find_own_node(const Hosts& hosts, const std::string& file) {
  if (config::is_set(config::Key::node)) {
    const auto node = static_cast<std::uint16_t>(config::number(config::Key::node));
    if (hosts.host_of(node) != nullptr) return node;
    throw Error(EINVAL, "find the own node in", file,
                "it has no line for node " + std::to_string(node) +
                    ", which WHERRY_NODE says this process is; add the line, or correct WHERRY_NODE");
  }
  const OwnHost own = OwnHost::look();
  const std::vector<std::uint16_t> nodes = nodes_of(hosts, own);
  if (nodes.size() == 1) return nodes.front();
  if (nodes.empty()) {
    throw Error(EINVAL, "find the own node in", file,
                "no line names this host, " + own.to_string() + "; add its line, or set WHERRY_NODE");
  }
  throw Error(EINVAL, "find the own node in", file,
              "nodes " + list_of(nodes) + " are all on this host; set WHERRY_NODE to the one that this process is");
}

/// The inputs from which a place was found.
struct Source {
  std::string file;
  std::string node;
  struct stat status{};

  [[nodiscard]] bool is(const Source& other) const {
    const auto same = [](const timespec& one, const timespec& two) {
      return one.tv_sec == two.tv_sec && one.tv_nsec == two.tv_nsec;
    };
    return file == other.file && node == other.node && status.st_dev == other.status.st_dev &&
           status.st_ino == other.status.st_ino && status.st_size == other.status.st_size &&
           same(status.st_mtim, other.status.st_mtim) && same(status.st_ctim, other.status.st_ctim);
  }
};

struct Found {
  Source source;
  std::shared_ptr<const OwnPlace> place;
  std::optional<Error> failure;  ///< the error of finding the own node
};

Found find_place(const Source& source) {
  Found found{.source = source, .place = nullptr, .failure = std::nullopt};
  auto place = std::make_shared<OwnPlace>();
  place->file = source.file;
  place->hosts = Hosts::read(source.file);
  try {
    place->node = find_own_node(place->hosts, source.file);
    found.place = std::move(place);
  } catch (const Error& error) {
    found.failure = error;
  }
  return found;
}

class LastFound {
 public:
  std::shared_ptr<const Found> get() {
    const std::lock_guard lock(mutex_);
    return found_;
  }
  void set(std::shared_ptr<const Found> found) {
    const std::lock_guard lock(mutex_);
    found_.swap(found);
  }

 private:
  std::mutex mutex_;  ///< held only to copy a pointer, because the resolver may take seconds
  std::shared_ptr<const Found> found_;
};

LastFound& last_found() {
  static constinit FoundOnce<LastFound> last;
  return last.get([] { return LastFound(); });
}

}  // namespace

OwnHost OwnHost::look() {
  std::array<char, 256> name{};
  (void)::gethostname(name.data(), name.size() - 1);
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) throw Error(errno, "read addresses of", "this host", "raise ulimit -n if it is short");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(all, ::freeifaddrs);
  std::vector<std::string> addresses;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (auto address = bytes_of(each->ifa_addr); !address.empty()) addresses.push_back(std::move(address));
  }
  return {name.data(), std::move(addresses)};
}

OwnHost::OwnHost(std::string name, std::vector<std::string> addresses)
    : name_(std::move(name)), addresses_(std::move(addresses)) {}

bool OwnHost::has(const std::string& address) const {
  return is_loopback(address) || std::ranges::find(addresses_, address) != addresses_.end();
}

bool OwnHost::is_called(const std::string& host) const {
  const auto numeric = addresses_of(host, AI_NUMERICHOST);
  if (!numeric.empty()) return has(numeric.front());
  if (is_same_name(host, "localhost") || is_same_name(host, name_)) return true;
  // A name without a domain is taken as one of this host's domain.
  const bool is_short = host.find('.') == std::string::npos || name_.find('.') == std::string::npos;
  return is_short && !name_.empty() && is_same_name(first_label(host), first_label(name_));
}

bool OwnHost::resolves_from(const std::string& host) const {
  return std::ranges::any_of(addresses_of(host, 0), [this](const std::string& each) { return has(each); });
}

std::string OwnHost::to_string() const {
  std::string text;
  for (const std::string& address : addresses_) {
    if (is_loopback(address)) continue;
    std::array<char, INET6_ADDRSTRLEN> shown{};
    const int family = address.size() == kIpv4Bytes ? AF_INET : AF_INET6;
    (void)::inet_ntop(family, address.data(), shown.data(), shown.size());
    text += (text.empty() ? "" : ", ") + std::string(shown.data());
  }
  return name_ + (text.empty() ? "" : " (" + text + ")");
}

std::vector<std::uint16_t> nodes_of(const Hosts& hosts, const OwnHost& own) {
  std::vector<std::uint16_t> nodes;
  for (const auto& [node, host] : hosts.all()) {
    if (own.is_called(host)) nodes.push_back(node);
  }
  if (!nodes.empty()) return nodes;
  const auto until = std::chrono::steady_clock::now() + kMostLookUp;
  std::string last;
  bool is_own = false;
  for (const auto& [node, host] : hosts.all()) {
    if (host != last) {
      if (std::chrono::steady_clock::now() > until) break;
      is_own = own.resolves_from(host);
      last = host;
    }
    if (is_own) nodes.push_back(node);
  }
  return nodes;
}

bool OwnPlace::is_here(std::uint16_t other) const {
  const std::string* own_host = hosts.host_of(node);
  const std::string* host = hosts.host_of(other);
  return own_host != nullptr && host != nullptr && is_same_name(*own_host, *host);
}

bool OwnPlace::is_alone() const {
  return std::ranges::all_of(hosts.all(), [this](const auto& each) { return is_here(each.first); });
}

std::shared_ptr<const OwnPlace> own_place() {
  Source source{.file = config::word(config::Key::hosts), .node = config::text(config::Key::node), .status = {}};
  if (!config::is_set(config::Key::node)) source.node.clear();
  if (source.file.empty()) {
    throw Error(EINVAL, "find hosts in", "WHERRY_HOSTS",
                "it is not set: make a file with the host of each node, one a line from node 0 on");
  }
  (void)::stat(source.file.c_str(), &source.status);
  auto found = last_found().get();
  if (found == nullptr || !found->source.is(source)) {
    found = std::make_shared<const Found>(find_place(source));
    last_found().set(found);
  }
  if (found->failure) throw Error(*found->failure);
  return found->place;
}

}  // namespace wherry
