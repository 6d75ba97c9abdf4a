// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <ostream>

#include <wherry/address.hpp>
#include <wherry/error.hpp>

#include "base/config.hpp"
#include "base/name.hpp"
#include "base/own_host.hpp"

namespace wherry {
namespace {

constexpr std::string_view kScheme = "wherry";
constexpr std::string_view kExample = "an address looks like wherry://0:2000 or wherry+shm://0:2000";

[[noreturn]] void refuse(std::string_view text, const std::string& reason) {
  throw Error(EINVAL, "read address", "\"" + std::string(text) + "\"", reason + ": " + std::string(kExample));
}

std::string parse_fabric(std::string_view text, std::string_view scheme) {
  if (scheme.substr(0, kScheme.size()) != kScheme) refuse(text, "it must begin with wherry:// or wherry+FABRIC://");
  std::string_view rest = scheme.substr(kScheme.size());
  if (rest.empty()) return {};
  if (rest.front() != '+') refuse(text, "it must begin with wherry:// or wherry+FABRIC://");
  rest.remove_prefix(1);
  if (!is_fabric_name(rest)) refuse(text, "a fabric's name is made of lower-case letters, digits, + and -");
  return std::string(rest);
}

std::optional<std::uint16_t> parse_number(std::string_view text, std::string_view part, const char* what) {
  if (part == "*") return std::nullopt;
  std::uint16_t value = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
  if (error != std::errc{} || end != part.data() + part.size()) refuse(text, what);
  return value;
}

std::string number_or_star(const std::optional<std::uint16_t>& value) { return value ? std::to_string(*value) : "*"; }

}  // namespace

Address Address::parse(std::string_view text) {
  constexpr std::string_view kSeparator = "://";
  const std::size_t separator = text.find(kSeparator);
  if (separator == std::string_view::npos) refuse(text, "it must begin with wherry:// or wherry+FABRIC://");
  Address address;
  address.fabric = parse_fabric(text, text.substr(0, separator));
  const std::string_view rest = text.substr(separator + kSeparator.size());
  const std::size_t colon = rest.find(':');
  if (colon == std::string_view::npos) refuse(text, "a : and a port must follow the node");
  address.node = parse_number(text, rest.substr(0, colon), "the node must be a number from 0 to 65535, or *");
  address.port = parse_number(text, rest.substr(colon + 1), "the port must be a number from 1 to 65535, or *");
  if (address.port == 0) refuse(text, "the port must be a number from 1 to 65535, or * for a free one");
  return address;
}

std::string Address::to_string() const {
  std::string text(kScheme);
  if (!fabric.empty()) text += "+" + fabric;
  return text + "://" + number_or_star(node) + ":" + number_or_star(port);
}

std::ostream& operator<<(std::ostream& to, const Address& address) { return to << address.to_string(); }

std::uint16_t own_node() {
  if (!config::is_set(config::Key::node) && config::is_set(config::Key::hosts)) {
    try {
      return own_place()->node;
    } catch (const Error&) {
      // Callers that need the hosts call own_place() themselves. Others work without.
    }
  }
  return static_cast<std::uint16_t>(config::number(config::Key::node));
}

}  // namespace wherry
