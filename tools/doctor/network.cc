// SPDX-License-Identifier: Apache-2.0
//
// The checks of this host's network settings: its entry in the hosts file, its ports, its key and its libraries.
#include "doctor/network.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <set>
#include <string>

#include <wherry/wherry.h>
#include <wherry/error.hpp>

#include "base/config.hpp"
#include "base/key_file.hpp"
#include "base/port_range.hpp"
#include "base/printable.hpp"
#include "base/readable.hpp"
#include "base/unique_fd.hpp"
#include "doctor/echo.hpp"
#include "fabric/ofi/layout/link_messages.hpp"
#include "fabric/ofi/layout/rendezvous_messages.hpp"

namespace wherry::tools::doctor {
namespace {

Finding failed(const Error& error) {
  const std::string found =
      fmt::format("{} {}: {}", error.operation(), printable(error.address()), error.code().message());
  return {Verdict::fail, found, error.advice().empty() ? "see the lines above" : printable(error.advice())};
}

/// Whether a listener could bind the port, for IPv6 and IPv4. Only for IPv4 if the kernel has no IPv6.
bool is_free(std::uint16_t port) {
  const int on = 1;
  const int off = 0;
  UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool has_ipv6 = fd.valid();
  if (!has_ipv6) fd = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (has_ipv6) (void)::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  sockaddr_in6 ipv6{};
  ipv6.sin6_family = AF_INET6;
  ipv6.sin6_port = htons(port);
  sockaddr_in ipv4{};
  ipv4.sin_family = AF_INET;
  ipv4.sin_port = htons(port);
  const auto* const address =
      has_ipv6 ? reinterpret_cast<const sockaddr*>(&ipv6) : reinterpret_cast<const sockaddr*>(&ipv4);
  const socklen_t length = has_ipv6 ? sizeof ipv6 : sizeof ipv4;
  return ::bind(fd.get(), address, length) == 0 && ::listen(fd.get(), 1) == 0;
}

/// Empty: no problem, or unknown. A container may be reached by an address of the host that is not its own.
std::string doubt_about(const OwnPlace& place) {
  const std::string& host = *place.hosts.host_of(place.node);
  const OwnHost own = OwnHost::look();
  if (own.is_called(host) || own.resolves_from(host)) return "";
  return fmt::format("{} is no name or address of this host, {}: correct WHERRY_NODE or the file", printable(host),
                     own.to_string());
}

}  // namespace

Finding check_hosts(std::shared_ptr<const OwnPlace>& place) {
  try {
    place = own_place();
    std::set<std::string> hosts;
    for (const auto& [node, host] : place->hosts.all()) hosts.insert(host);
    const std::string found = fmt::format("{}: {} on {}; this process is node {}, on {}", printable(place->file),
                                          counted(place->hosts.all().size(), "node"), counted(hosts.size(), "host"),
                                          place->node, printable(*place->hosts.host_of(place->node)));
    const std::string doubt = doubt_about(*place);
    return {doubt.empty() ? Verdict::ok : Verdict::fail, found, doubt};
  } catch (const Error& error) {
    return failed(error);
  }
}

Finding check_own_ports() {
  constexpr std::uint32_t kLeast = 2;  // one for the listener, one for the data of the accepting process
  try {
    const auto range = *PortRange::parse(config::word(config::Key::ports));
    std::uint32_t free = 0;
    for (std::uint32_t port = range.first; port <= range.last; ++port) {
      free += is_free(static_cast<std::uint16_t>(port)) ? 1 : 0;
    }
    const std::string found = fmt::format("{}: {} of {} are free on this host", range.to_string(), free, range.size());
    if (free >= kLeast) return {Verdict::ok, found, ""};
    return {Verdict::fail, found,
            "a listener takes one, and each process that accepts one more: set a larger range of WHERRY_PORTS, the "
            "same on all hosts"};
  } catch (const Error& error) {
    return failed(error);
  }
}

Finding check_key() {
  try {
    const std::string file = config::word(config::Key::network_key);
    if (file.empty()) {
      return {Verdict::fail, "WHERRY_KEY is not set",
              "make a key with: wherry key FILE; copy it to each host with mode 0600, and set WHERRY_KEY=FILE there"};
    }
    (void)read_key_file(file);
    return {Verdict::ok, printable(file) + " holds a key that only its owner can read", ""};
  } catch (const Error& error) {
    return failed(error);
  }
}

Finding check_libfabric() {
  const std::string file = config::text(config::Key::libfabric);
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto version =
      library == nullptr ? nullptr : reinterpret_cast<std::uint32_t (*)()>(::dlsym(library, "fi_version"));
  if (version == nullptr) {
    return {Verdict::fail, printable(file) + ": " + (library == nullptr ? printable(::dlerror()) : "no libfabric"),
            "install libfabric1, or set WHERRY_LIBFABRIC to the library's path"};
  }
  const std::uint32_t number = version();
  return {Verdict::ok,
          fmt::format("Wherry {}, rendezvous {}, link {}, libfabric {}.{} ({})", WHERRY_VERSION,
                      fabric::ofi::layout::kRendezvousVersion, fabric::ofi::layout::kLinkVersion, number >> 16,
                      number & 0xffff, printable(file)),
          ""};
}

Finding check_provider(bool has_place) {
  if (!has_place) return {Verdict::fail, "not tried: no address of this host is known", "correct the hosts first"};
  try {
    const double took = echo_with_itself("wherry+ofi://*:*");
    return {Verdict::ok,
            fmt::format("tcp: a stream of this process with itself was connected in {:.1f} ms", took / 1000), ""};
  } catch (const Error& error) {
    return failed(error);
  } catch (const std::exception& error) {
    return {Verdict::fail, printable(error.what()), "see the lines above that are not OK"};
  }
}

Finding check_network_memory() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  const std::string found = limit.rlim_cur == RLIM_INFINITY ? "unlimited" : human_bytes(limit.rlim_cur);
  return {Verdict::ok, found + "; the provider tcp locks none (verbs would: ulimit -l)", ""};
}

std::vector<NamedFinding> check_network(const std::string& host) {
  std::vector<NamedFinding> findings;
  std::shared_ptr<const OwnPlace> place;
  findings.push_back({"hosts", check_hosts(place)});
  findings.push_back({"ports", check_own_ports()});
  findings.push_back({"key", check_key()});
  findings.push_back({"versions", check_libfabric()});
  findings.push_back({"provider", check_provider(place != nullptr)});
  findings.push_back({"locked memory", check_network_memory()});
  std::vector<std::string> others;
  if (!host.empty()) {
    others.push_back(host);
  } else if (place != nullptr) {
    for (const auto& [node, name] : place->hosts.all()) {
      const bool is_new = std::ranges::find(others, name) == others.end();
      if (is_new && !place->is_here(node)) others.push_back(name);
    }
  }
  for (const std::string& other : others) {
    for (NamedFinding& each : check_other_host(other)) {
      each.name = printable(other) + " " + each.name;
      findings.push_back(std::move(each));
    }
  }
  return findings;
}

}  // namespace wherry::tools::doctor
